// SPDX-License-Identifier: Apache-2.0
#include "traces/capture_file/output.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace rehearse::capture_file {

int Output::open(const char* path) {
  close();
  do {
    fd_ = ::open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
  } while (fd_ < 0 && errno == EINTR);
  return fd_ < 0 ? errno : 0;
}

int Output::append(std::span<const uint8_t> bytes) {
  if (fd_ < 0) return EBADF;
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
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

}  // namespace rehearse::capture_file
