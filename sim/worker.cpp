// SPDX-License-Identifier: Apache-2.0
#include "sim/worker.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <thread>
#include <utility>

namespace rehearse::sim {
namespace {

// Frames on the pipe: one letter, eight bytes of length, the payload.
enum Frame : char { kProgress = 'p', kNote = 'n', kAnswer = 'a', kError = 'e' };

bool write_all(int fd, const char* data, size_t size) {
  while (size > 0) {
    const ssize_t n = ::write(fd, data, size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    data += n;
    size -= static_cast<size_t>(n);
  }
  return true;
}

void send(int fd, Frame frame, const std::string& payload) {
  std::string bytes(1, frame);
  const uint64_t size = payload.size();
  bytes.append(reinterpret_cast<const char*>(&size), sizeof size);
  write_all(fd, bytes.data(), bytes.size()) && write_all(fd, payload.data(), payload.size());
}

// Strings and numbers in one payload, each with its length before it.
void put(std::string& out, const std::string& text) {
  const uint64_t size = text.size();
  out.append(reinterpret_cast<const char*>(&size), sizeof size);
  out += text;
}

std::string take(std::string_view& in) {
  uint64_t size = 0;
  if (in.size() < sizeof size) return {};
  std::memcpy(&size, in.data(), sizeof size);
  in.remove_prefix(sizeof size);
  size = std::min<uint64_t>(size, in.size());
  std::string text(in.substr(0, size));
  in.remove_prefix(size);
  return text;
}

class PipeReporter final : public Reporter {
 public:
  explicit PipeReporter(int fd) : fd_(fd) {}
  void progress(std::string_view what, uint64_t done, uint64_t total) override {
    std::string payload;
    put(payload, std::string(what));
    put(payload, std::to_string(done));
    put(payload, std::to_string(total));
    send(fd_, kProgress, payload);
  }
  void note(std::string_view text) override { send(fd_, kNote, std::string(text)); }

 private:
  int fd_;
};

[[noreturn]] void work_and_exit(int fd, const Work& work) {
  PipeReporter reporter(fd);
  Result<std::string> answer = fail(Code::kInternal, "the simulation did not finish");
  try {
    answer = work(reporter);
  } catch (const std::bad_alloc&) {
    answer =
        fail(Code::kLimit, "out of memory", {}, "use fewer ranks or steps, or a larger machine");
  } catch (const std::exception& e) {
    answer = fail(Code::kInternal, std::string("unexpected: ") + e.what());
  }
  if (answer) {
    send(fd, kAnswer, *answer);
  } else {
    std::string payload;
    put(payload, std::to_string(static_cast<int>(answer.error().code)));
    put(payload, answer.error().what);
    put(payload, answer.error().where);
    put(payload, answer.error().fix);
    send(fd, kError, payload);
  }
  // Who waits for the end need not wait until memory is given back.
  ::close(fd);
  // SimGrid's static destructors are not for us.
  ::_exit(0);
}

// In a child that waits: true when `before` has hung up or `orders` has a word, false when its parent is gone.
bool may_begin(int before, int orders, pid_t parent) {
  while (true) {
    pollfd waited[] = {{orders, POLLIN, 0}, {before, 0, 0}};
    if (::poll(waited, 2, -1) < 0) continue;  // a signal
    char word = 0;
    if (waited[0].revents != 0) return ::recv(orders, &word, 1, 0) == 1;
    // Others may hold the parent's end of `orders` too.
    if (waited[1].revents != 0) return ::getppid() == parent;
  }
}

}  // namespace

// What a child has sent so far.
struct Child::Inbox {
  std::string buffer;
  Result<std::string> answer = fail(Code::kInternal, "no answer");
  bool answered = false;

  void handle(Frame frame, std::string_view payload, Reporter& reporter) {
    switch (frame) {
      case kProgress: {
        const std::string what = take(payload);
        const uint64_t done = std::stoull(take(payload));
        reporter.progress(what, done, std::stoull(take(payload)));
        break;
      }
      case kNote:
        reporter.note(payload);
        break;
      case kAnswer:
        answer = std::string(payload);
        answered = true;
        break;
      case kError: {
        Error error;
        error.code = static_cast<Code>(std::stoi(take(payload)));
        error.what = take(payload);
        error.where = take(payload);
        error.fix = take(payload);
        answer = tl::unexpected(error);
        answered = true;
        break;
      }
    }
  }

  void drain(Reporter& reporter) {
    size_t at = 0;
    while (buffer.size() - at >= 9) {
      uint64_t size = 0;
      std::memcpy(&size, buffer.data() + at + 1, sizeof size);
      if (buffer.size() - at - 9 < size) break;
      handle(static_cast<Frame>(buffer[at]), std::string_view(buffer).substr(at + 9, size),
             reporter);
      at += 9 + size;
    }
    buffer.erase(0, at);
  }
};

Child::Child(int descriptor, pid_t pid)
    : descriptor_(descriptor), pid_(pid), inbox_(std::make_unique<Inbox>()) {}

Child::Child(Child&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      orders_(std::exchange(other.orders_, -1)),
      pid_(std::exchange(other.pid_, -1)),
      inbox_(std::move(other.inbox_)) {}

Child& Child::operator=(Child&& other) noexcept {
  if (this != &other) {
    end();
    descriptor_ = std::exchange(other.descriptor_, -1);
    orders_ = std::exchange(other.orders_, -1);
    pid_ = std::exchange(other.pid_, -1);
    inbox_ = std::move(other.inbox_);
  }
  return *this;
}

Child::~Child() { end(); }

void Child::end() noexcept {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (orders_ >= 0) ::close(orders_);
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  descriptor_ = -1;
  orders_ = -1;
  pid_ = -1;
}

Result<Child> Child::start(const Work& work) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    return fail(Code::kIo, std::string("cannot make a pipe: ") + std::strerror(errno));
  }
  const pid_t pid = ::fork();
  if (pid < 0) {
    ::close(ends[0]);
    ::close(ends[1]);
    return fail(Code::kLimit, std::string("cannot start a process: ") + std::strerror(errno));
  }
  if (pid == 0) {
    ::close(ends[0]);
    work_and_exit(ends[1], work);
  }
  ::close(ends[1]);
  return Child(ends[0], pid);
}

Result<Child> Child::start_after(const Child& before, const Work& work) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return fail(Code::kIo, std::string("cannot make a socket: ") + std::strerror(errno));
  }
  const pid_t parent = ::getpid();
  auto child = start([&](Reporter& reporter) -> Result<std::string> {
    ::close(ends[1]);
    // Of the pipe that `before` writes to, this process too holds the end that is read.
    if (!may_begin(before.descriptor_, ends[0], parent)) ::_exit(0);
    ::close(ends[0]);
    ::close(before.descriptor_);
    return work(reporter);
  });
  ::close(ends[0]);
  if (!child) {
    ::close(ends[1]);
    return child;
  }
  child->orders_ = ends[1];
  return child;
}

void Child::begin() {
  // One that has begun, or died, does not listen any more.
  if (orders_ < 0) return;
  (void)::send(orders_, "b", 1, MSG_NOSIGNAL);
  ::close(std::exchange(orders_, -1));
}

bool Child::read(Reporter& reporter) {
  char chunk[1 << 16];
  ssize_t n = 0;
  do {
    n = ::read(descriptor_, chunk, sizeof chunk);
  } while (n < 0 && errno == EINTR);
  if (n <= 0) return false;
  inbox_->buffer.append(chunk, static_cast<size_t>(n));
  inbox_->drain(reporter);
  return true;
}

void Child::kill() const {
  if (pid_ > 0) ::kill(pid_, SIGKILL);
}

Result<std::string> Child::answer() {
  ::close(std::exchange(descriptor_, -1));
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  if (inbox_->answered) return inbox_->answer;
  if (WIFSIGNALED(status)) {
    const int signal = WTERMSIG(status);
    if (signal == SIGKILL) {
      return fail(Code::kLimit, "the simulation was killed, most likely for want of memory", {},
                  "use fewer ranks or steps, or a larger machine");
    }
    return fail(Code::kInternal, fmt::format("the simulation died of signal {}", signal));
  }
  return fail(Code::kInternal, "the simulation ended without an answer");
}

Result<std::string> in_child(const Work& work, Reporter& reporter) {
  RH_TRY(Child child, Child::start(work));
  bool stopped = false;
  while (true) {
    pollfd waiting{child.descriptor(), POLLIN, 0};
    const int ready = ::poll(&waiting, 1, 200);
    if (reporter.interrupted() && !stopped) {
      stopped = true;
      child.kill();
    }
    if (ready > 0 && !child.read(reporter)) break;
  }
  auto answer = child.answer();
  if (stopped) return fail(Code::kInterrupted, "stopped");
  return answer;
}

unsigned cores() { return std::max(1U, std::thread::hardware_concurrency()); }

}  // namespace rehearse::sim
