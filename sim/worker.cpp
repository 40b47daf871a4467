// SPDX-License-Identifier: Apache-2.0
#include "sim/worker.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <thread>
#include <utility>

#include "base/units.hpp"

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

void send(int fd, const Result<std::string>& answer) {
  if (answer) return send(fd, kAnswer, *answer);
  std::string payload;
  put(payload, std::to_string(static_cast<int>(answer.error().code)));
  put(payload, answer.error().what);
  put(payload, answer.error().where);
  put(payload, answer.error().fix);
  send(fd, kError, payload);
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
  send(fd, answer);
  // Who waits for the end need not wait until memory is given back.
  ::close(fd);
  // SimGrid's static destructors are not for us.
  ::_exit(0);
}

bool read_all(int fd, char* data, size_t size) {
  while (size > 0) {
    const ssize_t n = ::read(fd, data, size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    data += n;
    size -= static_cast<size_t>(n);
  }
  return true;
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

template <typename Body>
Result<Child> Child::start_with(const Body& body) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    return fail(Code::kIo, std::string("cannot make a pipe: ") + std::strerror(errno));
  }
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) {
    ::close(ends[0]);
    ::close(ends[1]);
    return fail(Code::kLimit, std::string("cannot start a process: ") + std::strerror(errno));
  }
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(0);
    ::close(ends[0]);
    body(ends[1]);
  }
  ::close(ends[1]);
  return Child(ends[0], pid);
}

Result<Child> Child::start(const Work& work) {
  return start_with([&](int answers) { work_and_exit(answers, work); });
}

Result<Child> Child::start_foreman(const Piece& piece) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return fail(Code::kIo, std::string("cannot make a socket: ") + std::strerror(errno));
  }
  auto child = start_with([&](int answers) {
    ::close(ends[1]);
    SilentReporter silent;
    size_t which = 0;
    while (read_all(ends[0], reinterpret_cast<char*>(&which), sizeof which)) {
      send(answers, in_child([&](Reporter&) { return piece(which); }, silent));
    }
    ::_exit(0);
  });
  ::close(ends[0]);
  if (!child) {
    ::close(ends[1]);
    return child;
  }
  child->orders_ = ends[1];
  return child;
}

bool Child::order(size_t piece) {
  return ::send(orders_, &piece, sizeof piece, MSG_NOSIGNAL) == sizeof piece;
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

bool Child::answered() const { return inbox_->answered; }

Result<std::string> Child::take_answer() {
  inbox_->answered = false;
  return std::move(inbox_->answer);
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

Result<std::string> encoded(const google::protobuf::MessageLite& message) {
  const size_t bytes = message.ByteSizeLong();
  if (bytes <= INT32_MAX) return message.SerializeAsString();
  return fail(Code::kLimit,
              fmt::format("what was found out has {}, 2 GiB are the most",
                          format_bytes(static_cast<Bytes>(bytes))),
              {}, "simulate fewer steps or ranks, or leave out the timeline");
}

unsigned cores() { return std::max(1U, std::thread::hardware_concurrency()); }

}  // namespace rehearse::sim
