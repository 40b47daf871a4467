// SPDX-License-Identifier: Apache-2.0
#include "base/atomic_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <tuple>
#include <utility>

namespace rehearse {
namespace fs = std::filesystem;
namespace {

constexpr int kMaxTemporaries = 1000;
constexpr uint64_t kPartForDisk = 16 << 20;
constexpr size_t kMaxNameInTemporary = 200;  // leaves room for the suffix below NAME_MAX

std::string advice(int error) {
  switch (error) {
    case ENOSPC:
    case EDQUOT:
      return "free some space or write somewhere else";
    case EACCES:
    case EPERM:
    case EROFS:
      return "write to a folder you may write to";
    case ENOENT:
    case ENOTDIR:
      return "create the folder first";
    default:
      return "write to another disk or folder";
  }
}

tl::unexpected<Error> io_error(std::string_view what, const fs::path& path, int error) {
  return fail(Code::kIo, fmt::format("{}: {}", what, std::strerror(error)), path.string(),
              advice(error));
}

tl::unexpected<Error> cannot_read(const fs::path& path, int error) {
  return fail(Code::kIo, fmt::format("cannot read: {}", std::strerror(error)), path.string(),
              "copy it to another disk and name the copy");
}

fs::path folder_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

bool is_special(const fs::path& target, const struct stat* status) {
  const std::string normal = target.lexically_normal().string();
  // /dev/shm is a folder like any other: memory.
  if (normal.starts_with("/dev/") && !normal.starts_with("/dev/shm/")) return true;
  if (normal.starts_with("/proc/")) return true;
  return status != nullptr && !S_ISREG(status->st_mode) && !S_ISDIR(status->st_mode);
}

// stdout and stderr are duplicated so that output appended by the shell (>>) stays appended.
int open_special(const fs::path& target) {
  if (target == "/dev/stdout") return ::dup(STDOUT_FILENO);
  if (target == "/dev/stderr") return ::dup(STDERR_FILENO);
  return ::open(target.c_str(), O_WRONLY | O_CLOEXEC);
}

// Has the open file a name yet?
bool is_named(int fd) {
  struct stat status {};
  return ::fstat(fd, &status) != 0 || status.st_nlink > 0;
}

std::string descriptor_path(int fd) { return fmt::format("/proc/self/fd/{}", fd); }

// Where the file system can, a temporary has no name until it is whole: a writer that is killed leaves nothing. It
// is given one by link_unnamed(). -1: this place cannot.
int open_unnamed(const fs::path& folder) {
  const int fd = ::open(folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
  if (fd >= 0 && ::access(descriptor_path(fd).c_str(), F_OK) != 0) {
    ::close(fd);
    return -1;
  }
  return fd;
}

// The numbered name is taken with O_EXCL, so two writers never share one. A file without a name takes one when it is
// linked.
std::pair<int, fs::path> open_temporary(const fs::path& target) {
  const std::string name = target.filename().string().substr(0, kMaxNameInTemporary);
  const int unnamed = open_unnamed(folder_of(target));
  if (unnamed >= 0) return {unnamed, folder_of(target) / fmt::format(".{}.tmp-000000", name)};
  for (int i = 0; i < kMaxTemporaries; ++i) {
    const fs::path path = folder_of(target) / fmt::format(".{}.tmp-{:06}", name, i);
    const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd >= 0 || errno != EEXIST) return {fd, path};
  }
  errno = EEXIST;
  return {-1, target};
}

bool link_as(int fd, const fs::path& name) {
  return ::linkat(AT_FDCWD, descriptor_path(fd).c_str(), AT_FDCWD, name.c_str(),
                  AT_SYMLINK_FOLLOW) == 0;
}

// Gives the file a name beside the target, the first that is free; errno says why not.
bool link_unnamed(int fd, const fs::path& target, fs::path& temporary) {
  const std::string name = target.filename().string().substr(0, kMaxNameInTemporary);
  for (int i = 0; i < kMaxTemporaries; ++i) {
    temporary = folder_of(target) / fmt::format(".{}.tmp-{:06}", name, i);
    if (link_as(fd, temporary)) return true;
    if (errno != EEXIST) return false;
  }
  return false;
}

void sync_folder(const fs::path& folder) {
  // Some file systems refuse to sync folders; the file itself is already safe.
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  ::fsync(fd);
  ::close(fd);
}

tl::unexpected<Error> exists_error(const fs::path& target) {
  return fail(Code::kUsage, "the file exists already", target.string(),
              "choose another name or pass --force to replace it");
}

}  // namespace

Result<AtomicFile> AtomicFile::create(const fs::path& target, Overwrite overwrite) {
  if (target.empty() || !target.has_filename()) {
    return fail(Code::kUsage, "this is not a file name", target.string(), "name a file to write");
  }
  struct stat status {};
  const bool exists = ::stat(target.c_str(), &status) == 0;
  if (exists && S_ISDIR(status.st_mode)) {
    return fail(Code::kUsage, "this is a folder, not a file", target.string(),
                "name a file to write");
  }
  AtomicFile file;
  file.target_ = target;
  file.overwrite_ = overwrite;
  int fd = -1;
  if (is_special(target, exists ? &status : nullptr)) {
    fd = open_special(target);
  } else {
    if (exists && overwrite == Overwrite::kRefuse) return exists_error(target);
    std::error_code ec;
    if (exists && fs::is_symlink(target, ec)) {
      if (fs::path real = fs::canonical(target, ec); !ec) file.target_ = std::move(real);
    }
    fs::path temporary;
    std::tie(fd, temporary) = open_temporary(file.target_);
    if (fd >= 0) file.temporary_ = std::move(temporary);
    if (fd >= 0 && exists) (void)::fchmod(fd, status.st_mode & 0777);
  }
  if (fd < 0) return io_error("cannot open the file for writing", target, errno);
  file.file_ = ::fdopen(fd, "wb");
  if (file.file_ == nullptr) {
    const int error = errno;
    ::close(fd);
    return io_error("cannot open the file for writing", target, error);
  }
  return file;
}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : file_(std::exchange(other.file_, nullptr)),
      target_(std::move(other.target_)),
      temporary_(std::exchange(other.temporary_, {})),
      overwrite_(other.overwrite_),
      size_(std::exchange(other.size_, 0)) {}

AtomicFile& AtomicFile::operator=(AtomicFile&& other) noexcept {
  if (this == &other) return *this;
  discard();
  file_ = std::exchange(other.file_, nullptr);
  target_ = std::move(other.target_);
  temporary_ = std::exchange(other.temporary_, {});
  overwrite_ = other.overwrite_;
  size_ = std::exchange(other.size_, 0);
  return *this;
}

AtomicFile::~AtomicFile() { discard(); }

void AtomicFile::discard() noexcept {
  if (file_ != nullptr) {
    // A file that never had a name goes with its descriptor; the name may be another writer's.
    if (!temporary_.empty() && !is_named(::fileno(file_))) temporary_.clear();
    std::fclose(std::exchange(file_, nullptr));
  }
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
  temporary_.clear();
}

Result<void> AtomicFile::write(std::string_view bytes) {
  if (file_ == nullptr) {
    return fail(Code::kInternal, "write to a file that is closed", target_.string());
  }
  if (std::fwrite(bytes.data(), 1, bytes.size(), file_) != bytes.size()) {
    const int error = errno;
    discard();
    return io_error("cannot write", target_, error);
  }
  const uint64_t begun = size_ / kPartForDisk * kPartForDisk;
  size_ += bytes.size();
  const uint64_t whole = size_ / kPartForDisk * kPartForDisk;
  // The disk works while the rest is made: commit() then waits for the last part only. What fails here fails there.
  if (whole > begun && !temporary_.empty()) {
    (void)::sync_file_range(::fileno(file_), static_cast<off64_t>(begun),
                            static_cast<off64_t>(whole - begun), SYNC_FILE_RANGE_WRITE);
  }
  return {};
}

Result<void> AtomicFile::commit() { return close_as(Sync::kDisk); }

Result<void> AtomicFile::commit_unsynced() { return close_as(Sync::kNone); }

Result<void> AtomicFile::close_as(Sync sync) {
  if (file_ == nullptr) {
    return fail(Code::kInternal, "commit of a file that is closed", target_.string());
  }
  auto result = publish(sync);
  discard();
  return result;
}

Result<void> AtomicFile::publish(Sync sync) {
  if (std::fflush(file_) != 0) return io_error("cannot write", target_, errno);
  const bool direct = temporary_.empty();
  if (!direct && sync == Sync::kDisk && ::fsync(::fileno(file_)) != 0) {
    return io_error("cannot write", target_, errno);
  }
  if (!direct && !is_named(::fileno(file_))) {
    // Where nothing is in the way it has its name at once.
    if (link_as(::fileno(file_), target_)) {
      temporary_.clear();
      if (std::fclose(std::exchange(file_, nullptr)) != 0) {
        const int error = errno;
        ::unlink(target_.c_str());
        return io_error("cannot write", target_, error);
      }
      if (sync == Sync::kDisk) sync_folder(folder_of(target_));
      return {};
    }
    if (!link_unnamed(::fileno(file_), target_, temporary_)) {
      const int error = errno;
      temporary_.clear();
      return io_error("cannot name the finished file", target_, error);
    }
  }
  if (std::fclose(std::exchange(file_, nullptr)) != 0) {
    return io_error("cannot write", target_, errno);
  }
  if (direct) return {};
  int failed = -1;
  if (overwrite_ == Overwrite::kRefuse) {
    failed = ::renameat2(AT_FDCWD, temporary_.c_str(), AT_FDCWD, target_.c_str(), RENAME_NOREPLACE);
    if (failed != 0 && errno == EEXIST) return exists_error(target_);
    // Some file systems do not know RENAME_NOREPLACE.
    if (failed != 0 && errno != EINVAL && errno != ENOSYS) {
      return io_error("cannot rename the finished file into place", target_, errno);
    }
  }
  if (failed != 0 && ::rename(temporary_.c_str(), target_.c_str()) != 0) {
    return io_error("cannot rename the finished file into place", target_, errno);
  }
  temporary_.clear();
  if (sync == Sync::kDisk) sync_folder(folder_of(target_));
  return {};
}

Result<void> write_file(const fs::path& target, std::string_view bytes, Overwrite overwrite) {
  RH_TRY(AtomicFile file, AtomicFile::create(target, overwrite));
  if (auto written = file.write(bytes); !written) return written;
  return file.commit();
}

Result<void> write_file_unsynced(const fs::path& target, std::string_view bytes,
                                 Overwrite overwrite) {
  RH_TRY(AtomicFile file, AtomicFile::create(target, overwrite));
  if (auto written = file.write(bytes); !written) return written;
  return file.commit_unsynced();
}

Result<std::string> read_file(const fs::path& path, uint64_t limit) {
  // O_NONBLOCK: opening a pipe without a writer must not wait.
  const int fd = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) {
    return fail(Code::kMissingInput, fmt::format("cannot open the file: {}", std::strerror(errno)),
                path.string(), "check the path");
  }
  std::FILE* file = ::fdopen(fd, "rb");
  struct stat status {};
  if (file == nullptr || ::fstat(fd, &status) != 0) {
    const int error = errno;
    if (file != nullptr)
      std::fclose(file);
    else
      ::close(fd);
    return cannot_read(path, error);
  }
  const auto close = [](std::FILE* f) { std::fclose(f); };
  const std::unique_ptr<std::FILE, decltype(close)> closing(file, close);
  if (!S_ISREG(status.st_mode)) {
    const char* kind = S_ISDIR(status.st_mode) ? "a folder" : "a pipe or device";
    return fail(Code::kMissingInput, fmt::format("this is {}, not a file", kind), path.string(),
                "name a regular file");
  }
  const auto too_large = [&] {
    return fail(Code::kLimit, fmt::format("the file is larger than {} bytes", limit), path.string(),
                "split it or name another file");
  };
  if (static_cast<uint64_t>(status.st_size) > limit) return too_large();
  std::string bytes;
  bytes.reserve(static_cast<size_t>(status.st_size));
  char buffer[1 << 16];
  while (const size_t n = std::fread(buffer, 1, sizeof buffer, file)) {
    if (bytes.size() + n > limit) return too_large();
    bytes.append(buffer, n);
  }
  if (std::ferror(file) != 0) return cannot_read(path, errno);
  return bytes;
}

}  // namespace rehearse
