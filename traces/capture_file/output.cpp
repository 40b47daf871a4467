// SPDX-License-Identifier: Apache-2.0
#include "traces/capture_file/output.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace rehearse::capture_file {
namespace {

// Programs close descriptors that they do not know, and what they open then gets the lowest numbers. One far up is not
// given to them between our looking at it and our writing; below the 1024 that select() can take.
constexpr int kFarUp = 800;

}  // namespace

int Output::open(const char* path) {
  close();
  do {
    fd_ = ::open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
  } while (fd_ < 0 && errno == EINTR);
  if (fd_ < 0) return errno;
  if (const int far = ::fcntl(fd_, F_DUPFD_CLOEXEC, kFarUp); far >= 0) {
    ::close(fd_);
    fd_ = far;
  }
  struct ::stat facts {};
  if (::fstat(fd_, &facts) != 0) return errno;
  device_ = facts.st_dev;
  file_ = facts.st_ino;
  return 0;
}

int Output::lock() {
  if (fd_ < 0) return EBADF;
  return ::flock(fd_, LOCK_EX | LOCK_NB) == 0 ? 0 : errno;
}

bool Output::is_ours() const {
  struct ::stat facts {};
  return fd_ >= 0 && ::fstat(fd_, &facts) == 0 && facts.st_dev == device_ && facts.st_ino == file_;
}

int Output::append(std::span<const uint8_t> bytes) {
  if (!is_ours()) return EBADF;
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t wrote = ::write(fd_, bytes.data() + done, bytes.size() - done);
    if (wrote > 0) {
      done += static_cast<size_t>(wrote);
      continue;
    }
    if (wrote < 0 && errno == EINTR) continue;
    const int error = wrote < 0 ? errno : EIO;
    struct ::stat facts {};
    if (done > 0 && ::fstat(fd_, &facts) == 0) {
      // A reader skips a half record too, if this fails.
      [[maybe_unused]] const int ignored =
          ::ftruncate(fd_, facts.st_size - static_cast<off_t>(done));
    }
    return error;
  }
  return 0;
}

int Output::sync() {
  if (fd_ < 0) return EBADF;
  return ::fdatasync(fd_) == 0 ? 0 : errno;
}

void Output::close() {
  if (is_ours()) ::close(fd_);
  fd_ = -1;
}

}  // namespace rehearse::capture_file
