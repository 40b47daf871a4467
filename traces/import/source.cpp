// SPDX-License-Identifier: Apache-2.0
#include "traces/import/source.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <optional>

#include "traces/import/decompress.hpp"

namespace rehearse::traces {
namespace {

constexpr size_t kHeadBytes = 256 << 10;
constexpr uint64_t kRatioAfter = 64 << 20;

// Counts and hashes what is stored; runs on the decompressing thread when there is one.
class StoredBytes final : public ByteReader {
 public:
  explicit StoredBytes(std::unique_ptr<ByteReader> inner) : inner_(std::move(inner)) {
    hash_.reset(XXH3_createState());
    XXH3_64bits_reset(hash_.get());
  }
  Result<size_t> read(std::span<char> out) override {
    RH_TRY(const size_t got, inner_->read(out));
    if (got == 0) {
      digest_ = XXH3_64bits_digest(hash_.get());
    } else {
      XXH3_64bits_update(hash_.get(), out.data(), got);
      taken_ += got;
    }
    return got;
  }
  [[nodiscard]] uint64_t taken() const { return taken_; }
  [[nodiscard]] uint64_t digest() const { return digest_; }

 private:
  struct Free {
    void operator()(XXH3_state_t* s) const { XXH3_freeState(s); }
  };
  std::unique_ptr<ByteReader> inner_;
  std::unique_ptr<XXH3_state_t, Free> hash_;
  std::atomic<uint64_t> taken_{0}, digest_{0};
};

class FileBytes final : public ByteReader {
 public:
  FileBytes(int fd, std::string name) : fd_(fd), name_(std::move(name)) {}
  ~FileBytes() override { ::close(fd_); }
  Result<size_t> read(std::span<char> out) override {
    for (;;) {
      const ssize_t got = ::read(fd_, out.data(), out.size());
      if (got >= 0) return static_cast<size_t>(got);
      if (errno != EINTR) {
        return fail(Code::kIo, fmt::format("cannot read: {}", std::strerror(errno)), name_,
                    "copy it to another disk and name the copy");
      }
    }
  }

 private:
  int fd_;
  std::string name_;
};

class MemoryBytes final : public ByteReader {
 public:
  explicit MemoryBytes(std::string_view bytes) : left_(bytes) {}
  Result<size_t> read(std::span<char> out) override {
    const size_t n = std::min(out.size(), left_.size());
    if (n > 0) std::memcpy(out.data(), left_.data(), n);
    left_.remove_prefix(n);
    return n;
  }

 private:
  std::string_view left_;
};

// The magic bytes were read to tell the encoding; this gives them back.
class Prefixed final : public ByteReader {
 public:
  Prefixed(std::string prefix, std::unique_ptr<ByteReader> rest)
      : prefix_(std::move(prefix)), rest_(std::move(rest)) {}
  Result<size_t> read(std::span<char> out) override {
    if (used_ == prefix_.size()) return rest_->read(out);
    const size_t n = std::min(out.size(), prefix_.size() - used_);
    std::memcpy(out.data(), prefix_.data() + used_, n);
    used_ += n;
    return n;
  }

 private:
  std::string prefix_;
  size_t used_ = 0;
  std::unique_ptr<ByteReader> rest_;
};

Encoding encoding_of(std::string_view magic) {
  using namespace std::string_view_literals;
  if (magic.starts_with("\x1f\x8b"sv)) return Encoding::kGzip;
  if (magic.starts_with("\x28\xb5\x2f\xfd"sv)) return Encoding::kZstd;
  // A frame to be skipped, which parallel compressors put first (RFC 8878, 3.1.2).
  if (magic.ends_with("\x2a\x4d\x18"sv) && (magic[0] & 0xf0) == 0x50) return Encoding::kZstd;
  return Encoding::kPlain;
}

}  // namespace

const char* name_of(Encoding encoding) {
  switch (encoding) {
    case Encoding::kPlain:
      return "plain";
    case Encoding::kGzip:
      return "gzip";
    case Encoding::kZstd:
      return "zstd";
  }
  return "plain";
}

struct Source::Impl {
  std::string name;
  std::filesystem::path path;
  std::string_view memory;  // of Source::over
  SourceOptions options;
  uint64_t stored = 0;
  Encoding encoding = Encoding::kPlain;
  DecodeState state;
  std::unique_ptr<StoredBytes> raw;
  std::unique_ptr<ByteReader> decoded;  // null: plain; before raw in destruction
  std::string head;
  size_t head_used = 0;
  std::optional<Error> head_error;  // what reading ran into just after the head
  uint64_t given = 0, produced = 0;

  Result<void> begin(std::unique_ptr<ByteReader> bytes);
  Result<size_t> produce(std::span<char> out);
};

Result<void> Source::Impl::begin(std::unique_ptr<ByteReader> bytes) {
  std::string magic(4, '\0');
  RH_TRY(const size_t got, bytes->read(magic));
  magic.resize(got);
  encoding = encoding_of(magic);
  raw = std::make_unique<StoredBytes>(std::make_unique<Prefixed>(magic, std::move(bytes)));
  if (encoding == Encoding::kGzip) decoded = read_ahead(gzip_reader(*raw, name, state));
  if (encoding == Encoding::kZstd) decoded = read_ahead(zstd_reader(*raw, name, state));
  head.resize(kHeadBytes);
  size_t filled = 0;
  while (filled < head.size()) {
    auto n = produce(std::span(head).subspan(filled));
    if (!n && n.error().code == Code::kLimit) return tl::unexpected(n.error());
    if (!n) {
      head_error = std::move(n).error();
      break;
    }
    if (*n == 0) break;
    filled += *n;
  }
  head.resize(filled);
  // A byte order mark is no content; offsets still count it.
  if (head.starts_with("\xef\xbb\xbf")) {
    head.erase(0, 3);
    given = 3;
  }
  return {};
}

Result<size_t> Source::Impl::produce(std::span<char> out) {
  RH_TRY(const size_t got, decoded ? decoded->read(out) : raw->read(out));
  produced += got;
  if (produced > options.max_bytes) {
    return fail(Code::kLimit, fmt::format("more than {} bytes of content", options.max_bytes), name,
                "raise --limit bytes=SIZE if the file is to be trusted");
  }
  if (decoded && produced > kRatioAfter && produced / options.max_ratio > raw->taken()) {
    return fail(
        Code::kLimit,
        fmt::format("{} bytes unpack to more than {}: no trace compresses {} times", raw->taken(),
                    produced, options.max_ratio),
        name, "this looks like a decompression bomb; raise --limit ratio=N if it is to be trusted");
  }
  return got;
}

Source::Source(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Source::Source(Source&&) noexcept = default;
Source& Source::operator=(Source&&) noexcept = default;
Source::~Source() = default;

Result<Source> Source::open(const std::filesystem::path& path, const SourceOptions& options) {
  const std::string name = path.string();
  struct ::stat facts {};
  // O_NONBLOCK: opening a pipe without a writer must not wait.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    return fail(errno == ENOENT ? Code::kMissingInput : Code::kIo,
                fmt::format("cannot open: {}", std::strerror(errno)), name,
                "check the path and its permissions");
  }
  auto impl = std::make_unique<Impl>();
  auto bytes = std::make_unique<FileBytes>(fd, name);
  if (::fstat(fd, &facts) != 0 || S_ISDIR(facts.st_mode)) {
    return fail(Code::kBadInput, "is a folder, not a file", name, "name the files inside it");
  }
  // Some formats are read more than once, which a pipe cannot be; a device may never end.
  if (!S_ISREG(facts.st_mode)) {
    return fail(Code::kMissingInput, "is a pipe or device, not a file", name,
                "write what it gives to a file and name that");
  }
  impl->name = name;
  impl->path = path;
  impl->options = options;
  impl->stored = static_cast<uint64_t>(facts.st_size);
  if (auto begun = impl->begin(std::move(bytes)); !begun) return tl::unexpected(begun.error());
  return Source(std::move(impl));
}

Result<Source> Source::over(std::string_view bytes, std::string name,
                            const SourceOptions& options) {
  auto impl = std::make_unique<Impl>();
  impl->name = std::move(name);
  impl->memory = bytes;
  impl->options = options;
  impl->stored = bytes.size();
  if (auto begun = impl->begin(std::make_unique<MemoryBytes>(bytes)); !begun) {
    return tl::unexpected(begun.error());
  }
  return Source(std::move(impl));
}

Result<Source> Source::again() const {
  return impl_->path.empty() ? over(impl_->memory, impl_->name, impl_->options)
                             : open(impl_->path, impl_->options);
}

std::string_view Source::head() const { return impl_->head; }

Result<size_t> Source::read(std::span<char> out) {
  Impl& s = *impl_;
  size_t n = 0;
  if (s.head_used < s.head.size()) {
    n = std::min(out.size(), s.head.size() - s.head_used);
    std::memcpy(out.data(), s.head.data() + s.head_used, n);
    s.head_used += n;
  } else if (s.head_error) {
    return tl::unexpected(*s.head_error);
  } else {
    RH_TRY(n, s.produce(out));
  }
  s.given += n;
  return n;
}

bool Source::cut() const { return impl_->state.cut; }
uint64_t Source::offset() const { return impl_->given; }
Encoding Source::encoding() const { return impl_->encoding; }
const std::string& Source::name() const { return impl_->name; }
const std::filesystem::path& Source::path() const { return impl_->path; }
uint64_t Source::stored_bytes() const { return impl_->stored; }
uint64_t Source::xxh3() const { return impl_->raw->digest(); }

}  // namespace rehearse::traces
