// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "traces/model/rtrace_file.hpp"

namespace rehearse::traces {

Result<ByteSource> ByteSource::open(const std::filesystem::path& path) {
  const std::string name = path.string();
  struct stat facts {};
  if (::stat(name.c_str(), &facts) != 0) {
    return fail(Code::kMissingInput, fmt::format("cannot open: {}", std::strerror(errno)), name,
                "check the path");
  }
  if (S_ISDIR(facts.st_mode)) {
    return fail(Code::kBadInput, "is a folder, not a .rtrace file", name, "name a file inside it");
  }
  if (!S_ISREG(facts.st_mode)) {
    return fail(Code::kBadInput, "is not a regular file, and a .rtrace file is read in any order",
                name, "write it to a file first");
  }
  const int descriptor = ::open(name.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) {
    return fail(Code::kMissingInput, fmt::format("cannot open: {}", std::strerror(errno)), name,
                "check the permissions");
  }
  return ByteSource(descriptor, static_cast<uint64_t>(facts.st_size), name);
}

ByteSource::ByteSource(int descriptor, uint64_t size, std::string name)
    : descriptor_(descriptor), size_(size), name_(std::move(name)) {}

ByteSource::ByteSource(ByteSource&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      size_(other.size_),
      name_(std::move(other.name_)) {}

ByteSource& ByteSource::operator=(ByteSource&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(size_, other.size_);
  std::swap(name_, other.name_);
  return *this;
}

ByteSource::~ByteSource() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Result<void> ByteSource::read(uint64_t offset, uint64_t length, std::string& out) const {
  out.resize(length);
  for (uint64_t done = 0; done < length;) {
    const ssize_t got =
        ::pread(descriptor_, out.data() + done, length - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      return fail(Code::kIo, fmt::format("cannot read: {}", std::strerror(errno)),
                  where(offset + done), "copy it to another disk and name the copy");
    }
    if (got == 0) {
      return fail(Code::kIo, "the file became shorter while it was read", where(offset + done),
                  "read it again when nothing writes to it");
    }
    done += static_cast<uint64_t>(got);
  }
  return {};
}

std::string ByteSource::where(uint64_t offset) const {
  return fmt::format("{}: byte {}", name_, offset);
}

Result<std::string_view> read_record(const ByteSource& source, uint64_t offset, RecordType type,
                                     RecordRoom& room) {
  static constexpr const char* kAdvice = "the file is damaged; copy or write it again";
  const auto bad = [&](std::string what) {
    return fail(Code::kBadInput, std::move(what), source.where(offset), kAdvice);
  };
  if (offset > source.size() || source.size() - offset < kRecordHeader) {
    return bad("the file ends inside the head of a record");
  }
  if (auto done = source.read(offset, kRecordHeader, room.payload); !done) {
    return tl::unexpected(done.error());
  }
  const RecordHead head = head_from(room.payload);
  if (std::string wrong = complaint_about(head); !wrong.empty()) return bad(std::move(wrong));
  if (head.type != type) {
    return bad(fmt::format("record of type {} where {} was expected",
                           static_cast<uint32_t>(head.type), static_cast<uint32_t>(type)));
  }
  if (head.length > source.size() - offset - kRecordHeader) {
    return bad(fmt::format("record of {} bytes of which the file has {}", head.length,
                           source.size() - offset - kRecordHeader));
  }
  if (auto done = source.read(offset + kRecordHeader, head.length, room.payload); !done) {
    return tl::unexpected(done.error());
  }
  if (hash_of(head.type, head.flags, room.payload) != head.hash) {
    return bad("record whose content does not match its hash");
  }
  auto plain = unpack(head, room.payload, room.plain);
  if (!plain) return bad(plain.error().what);
  return plain;
}

}  // namespace rehearse::traces
