// SPDX-License-Identifier: Apache-2.0
// Preloaded into rehearse by own_faults_test.py: the machine fails at the nth call that changes a file, writes
// to stdout or opens a file. glibc's stdio does not go through write(), so the calls of the C library are counted, not those of the
// system.
//
//   FAIL_AT=n    the nth such call fails (from 1); unset or 0: none
//   FAIL_HOW     error number that it fails with, or "kill": the process is killed there instead
//   FAIL_COUNT   a file that the number of calls is appended to when the process ends
//   OPEN_BELOW   folders, divided by ":": opens for reading of what exists below them are counted too, by OPEN_COUNT
//   OPEN_AT=n    the nth of those fails, with error number OPEN_HOW: the file is gone, unreadable or behind a bad disk
//   OPEN_COUNT   like FAIL_COUNT
//   READS        "interrupted": every other read() ends with EINTR; "short": each gives at most 7 bytes
//   CLOCK        "jumps": each look at the clock is years before or after the last one
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>

namespace {

std::atomic<long> calls{0};
const pid_t first_process = ::getpid();

// Files and stdout, in the first process: pipes between processes are not outputs.
bool counts(int fd) {
  struct stat status {};
  if (::getpid() != first_process || fd < 0) return false;
  return fd == STDOUT_FILENO || (::fstat(fd, &status) == 0 && S_ISREG(status.st_mode));
}

// True when this call is the one to fail; errno is set.
bool fails_now() {
  static const char* at = ::getenv("FAIL_AT");
  static const char* how = ::getenv("FAIL_HOW");
  const long n = ++calls;
  if (at == nullptr || n != ::atol(at)) return false;
  if (how != nullptr && ::strcmp(how, "kill") == 0) {
    ::kill(::getpid(), SIGKILL);
    for (;;) ::pause();
  }
  errno = how == nullptr ? ENOSPC : ::atoi(how);
  return true;
}

template <typename F>
F next(const char* name, F) {
  return reinterpret_cast<F>(::dlsym(RTLD_NEXT, name));
}

std::atomic<long> opens{0};

bool below_the_folders(const char* path) {
  static const char* folders = ::getenv("OPEN_BELOW");
  for (const char* at = folders; at != nullptr && *at != 0;) {
    const char* end = ::strchrnul(at, ':');
    const auto length = static_cast<size_t>(end - at);
    if (length > 0 && ::strncmp(path, at, length) == 0) return true;
    at = *end == ':' ? end + 1 : end;
  }
  return false;
}

// True when this open is the one to fail; errno is set. Children of the first process read too.
bool open_fails(const char* path, int flags) {
  if ((flags & O_ACCMODE) != O_RDONLY || !below_the_folders(path)) return false;
  struct stat status {};
  if (::stat(path, &status) != 0) return false;
  static const char* at = ::getenv("OPEN_AT");
  static const char* how = ::getenv("OPEN_HOW");
  const long n = ++opens;
  if (at == nullptr || n != ::atol(at)) return false;
  errno = how == nullptr ? ENOENT : ::atoi(how);
  return true;
}

void append_count(const char* variable, long count) {
  const char* file = ::getenv(variable);
  if (file == nullptr || ::getpid() != first_process) return;
  char text[32];
  const int length = ::snprintf(text, sizeof text, "%ld\n", count);
  const int fd = static_cast<int>(::syscall(SYS_open, file, O_WRONLY | O_CREAT | O_APPEND, 0644));
  (void)!::syscall(SYS_write, fd, text, length);
}

struct AtEnd {
  ~AtEnd() {
    append_count("FAIL_COUNT", calls.load());
    append_count("OPEN_COUNT", opens.load());
  }
} at_end;

}  // namespace

extern "C" {

size_t fwrite(const void* data, size_t size, size_t n, FILE* file) {
  static const auto real = next("fwrite", &fwrite);
  return counts(::fileno(file)) && fails_now() ? 0 : real(data, size, n, file);
}
int fflush(FILE* file) {
  static const auto real = next("fflush", &fflush);
  return file != nullptr && counts(::fileno(file)) && fails_now() ? EOF : real(file);
}
ssize_t write(int fd, const void* data, size_t size) {
  static const auto real = next("write", &write);
  return counts(fd) && fails_now() ? -1 : real(fd, data, size);
}
int fsync(int fd) {
  static const auto real = next("fsync", &fsync);
  return counts(fd) && fails_now() ? -1 : real(fd);
}
int linkat(int from, const char* old, int to, const char* fresh, int flags) {
  static const auto real = next("linkat", &linkat);
  return fails_now() ? -1 : real(from, old, to, fresh, flags);
}
int rename(const char* from, const char* to) noexcept {
  static const auto real = next("rename", &rename);
  return fails_now() ? -1 : real(from, to);
}
int renameat2(int from, const char* old, int to, const char* fresh, unsigned flags) noexcept {
  static const auto real = next("renameat2", &renameat2);
  return fails_now() ? -1 : real(from, old, to, fresh, flags);
}
int mkdir(const char* path, mode_t mode) noexcept {
  static const auto real = next("mkdir", &mkdir);
  return fails_now() ? -1 : real(path, mode);
}

int open(const char* path, int flags, ...) {
  static const auto real = next("open", &open);
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  return open_fails(path, flags) ? -1 : real(path, flags, mode);
}
int open64(const char* path, int flags, ...) {
  static const auto real = next("open64", &open64);
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  return open_fails(path, flags) ? -1 : real(path, flags, mode);
}
FILE* fopen(const char* path, const char* mode) {
  static const auto real = next("fopen", &fopen);
  return mode[0] == 'r' && open_fails(path, O_RDONLY) ? nullptr : real(path, mode);
}
FILE* fopen64(const char* path, const char* mode) {
  static const auto real = next("fopen64", &fopen64);
  return mode[0] == 'r' && open_fails(path, O_RDONLY) ? nullptr : real(path, mode);
}
DIR* opendir(const char* path) {
  static const auto real = next("opendir", &opendir);
  return open_fails(path, O_RDONLY) ? nullptr : real(path);
}

ssize_t read(int fd, void* data, size_t size) {
  static const auto real = next("read", &read);
  static const char* how = ::getenv("READS");
  static std::atomic<int> turn{0};
  if (how != nullptr && ::strcmp(how, "interrupted") == 0 && ++turn % 2 == 1) {
    errno = EINTR;
    return -1;
  }
  return real(fd, data, how != nullptr && ::strcmp(how, "short") == 0 && size > 7 ? 7 : size);
}
int clock_gettime(clockid_t clock, struct timespec* now) noexcept {
  static const auto real = next("clock_gettime", &clock_gettime);
  static const bool jumps = ::getenv("CLOCK") != nullptr;
  static std::atomic<int> turn{0};
  const int done = real(clock, now);
  constexpr time_t kYear = 31'536'000;
  if (jumps && done == 0) now->tv_sec += (++turn % 3 - 1) * 20 * kYear;
  return done;
}

}  // extern "C"
