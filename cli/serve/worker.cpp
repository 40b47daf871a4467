// SPDX-License-Identifier: Apache-2.0
#include "cli/serve/worker.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

namespace rehearse::serve {
namespace {
using Clock = std::chrono::steady_clock;

constexpr size_t kMaxTalk = 64u << 10;
constexpr auto kPause = std::chrono::milliseconds(20);    // between looks at the process
constexpr auto kGrace = std::chrono::milliseconds(3000);  // between SIGTERM and SIGKILL

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    close();
    fd_ = std::exchange(other.fd_, -1);
    return *this;
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { close(); }
  [[nodiscard]] int get() const { return fd_; }
  void close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }

 private:
  int fd_ = -1;
};

struct Pipe {
  Descriptor read, write;
};

Result<Pipe> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return fail(Code::kIo, std::string("cannot make a pipe: ") + std::strerror(errno), "worker",
                "raise the limit of open files (ulimit -n)");
  }
  ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  Pipe pipe;
  pipe.read = Descriptor(ends[0]);
  pipe.write = Descriptor(ends[1]);
  return pipe;
}

std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> out;
  out.reserve(words.size() + 1);
  for (std::string& word : words) out.push_back(word.data());
  out.push_back(nullptr);
  return out;
}

std::vector<std::string> worker_environment() {
  std::vector<std::string> out = {"REHEARSE_PROGRESS=json", "NO_COLOR=1"};
  for (char** v = environ; v != nullptr && *v != nullptr; ++v) {
    const std::string_view whole = *v;
    if (!whole.starts_with("REHEARSE_PROGRESS=") && !whole.starts_with("NO_COLOR=")) {
      out.emplace_back(whole);
    }
  }
  return out;
}

// What posix_spawn does between fork and exec.
class SpawnPlan {
 public:
  SpawnPlan() {
    ::posix_spawn_file_actions_init(&files_);
    ::posix_spawnattr_init(&how_);
    // A group of its own, so that what it forks ends with it.
    sigset_t all, none;
    sigfillset(&all);
    sigemptyset(&none);
    ::posix_spawnattr_setsigdefault(&how_, &all);
    ::posix_spawnattr_setsigmask(&how_, &none);
    ::posix_spawnattr_setpgroup(&how_, 0);
    ::posix_spawnattr_setflags(
        &how_, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
    ::posix_spawn_file_actions_addopen(&files_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  }
  ~SpawnPlan() {
    ::posix_spawn_file_actions_destroy(&files_);
    ::posix_spawnattr_destroy(&how_);
  }
  SpawnPlan(const SpawnPlan&) = delete;
  SpawnPlan& operator=(const SpawnPlan&) = delete;

  void to_file(int fd, const std::filesystem::path& file) {
    ::posix_spawn_file_actions_addopen(&files_, fd, file.c_str(), O_WRONLY | O_CREAT | O_TRUNC,
                                       0644);
  }
  void to(int fd, const Descriptor& target) {
    ::posix_spawn_file_actions_adddup2(&files_, target.get(), fd);
  }
  Result<pid_t> start(const WorkerOrder& order) {
    ::posix_spawn_file_actions_addchdir_np(&files_, order.folder.c_str());
    // Connections of clients are nobody else's business.
    ::posix_spawn_file_actions_addclosefrom_np(&files_, 3);
    std::vector<std::string> words = {"rehearse"}, variables = worker_environment();
    words.insert(words.end(), order.words.begin(), order.words.end());
    std::vector<char*> argv = pointers_to(words), envp = pointers_to(variables);
    pid_t pid = 0;
    // Not its path: the file may have been replaced since we were started.
    const int error =
        ::posix_spawn(&pid, "/proc/self/exe", &files_, &how_, argv.data(), envp.data());
    if (error != 0) {
      return fail(Code::kIo, std::string("cannot start a worker: ") + std::strerror(error),
                  order.folder.string(), "look at the limits of processes and memory (ulimit -a)");
    }
    return pid;
  }

 private:
  posix_spawn_file_actions_t files_{};
  posix_spawnattr_t how_{};
};

void limit_files(pid_t pid, uint64_t bytes) {
  const rlimit none{};
  ::prlimit(pid, RLIMIT_CORE, &none, nullptr);
  if (bytes == 0) return;
  const rlimit size{bytes, bytes};
  ::prlimit(pid, RLIMIT_FSIZE, &size, nullptr);
}

bool process_ended(pid_t pid) {
  siginfo_t info{};
  return ::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT | WNOHANG) == 0 &&
         info.si_pid == pid;
}

// stderr of a worker, line by line.
class Talk {
 public:
  explicit Talk(const WorkerWatch& watch) : watch_(watch) {}

  void add(std::string_view bytes) {
    for (const char c : bytes) {
      if (c == '\n') {
        line();
      } else if (line_.size() < kMaxTalk) {
        line_ += c;
      }
    }
  }
  std::string rest() {
    line();
    return std::move(text_);
  }

 private:
  void line() {
    if (!progress()) {
      text_ += line_.empty() ? "" : line_ + "\n";
      if (text_.size() > kMaxTalk) text_.erase(0, text_.size() - kMaxTalk);
    }
    line_.clear();
  }
  bool progress() {
    if (!line_.starts_with("{\"progress\"")) return false;
    const auto json = nlohmann::json::parse(line_, nullptr, false);
    if (json.is_discarded()) return false;
    const auto& at = json["progress"];
    if (!at.is_object() || !at.contains("what") || !at["what"].is_string()) return false;
    const auto count = [&](const char* key) {
      return at.contains(key) && at[key].is_number_unsigned() ? at[key].get<uint64_t>() : 0;
    };
    if (watch_.progress) {
      watch_.progress({at["what"].get<std::string>(), count("done"), count("total")});
    }
    return true;
  }

  const WorkerWatch& watch_;
  std::string line_, text_;
};

// Everything that can be read now; false at the end.
bool drain(const Descriptor& from, const std::function<void(std::string_view)>& take) {
  std::array<char, 16384> chunk{};
  while (true) {
    const ssize_t n = ::read(from.get(), chunk.data(), chunk.size());
    if (n > 0) {
      take({chunk.data(), static_cast<size_t>(n)});
    } else if (n == 0) {
      return false;
    } else if (errno != EINTR) {
      return errno == EAGAIN;
    }
  }
}

// The process until it has ended.
class Vigil {
 public:
  Vigil(pid_t pid, const WorkerOrder& order, const WorkerWatch& watch, Pipe out, Pipe err)
      : pid_(pid),
        order_(order),
        watch_(watch),
        talk_(watch),
        out_(std::move(out)),
        err_(std::move(err)) {
    out_.write.close();
    err_.write.close();
  }

  WorkerEnd keep() {
    const auto begin = Clock::now();
    while (!process_ended(pid_)) {
      look();
      if (watch_.stopped && watch_.stopped()) end_it(WorkerEnd::Why::kStopped);
      if (Clock::now() - begin > order_.time_limit) end_it(WorkerEnd::Why::kTooLong);
      if (ending_ && Clock::now() > *ending_ + kGrace) ::kill(-pid_, SIGKILL);
    }
    // What it forked must not outlive it; the group is still ours until it is reaped.
    ::kill(-pid_, SIGKILL);
    read();
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    end_.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    end_.code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
    end_.talk = talk_.rest();
    return std::move(end_);
  }

 private:
  void look() {
    std::array<pollfd, 2> fds = {pollfd{err_.read.get(), POLLIN, 0},
                                 pollfd{out_.read.get(), POLLIN, 0}};
    ::poll(fds.data(), fds.size(), static_cast<int>(kPause.count()));
    read();
  }
  void read() {
    if (err_.read.get() >= 0 && !drain(err_.read, [&](std::string_view t) { talk_.add(t); })) {
      err_.read.close();
    }
    if (out_.read.get() >= 0 && !drain(out_.read, [&](std::string_view t) { take(t); })) {
      out_.read.close();
    }
  }
  void take(std::string_view bytes) {
    if (end_.output.size() + bytes.size() > order_.most_output) {
      end_it(WorkerEnd::Why::kTooMuch);
    } else {
      end_.output += bytes;
    }
  }
  void end_it(WorkerEnd::Why why) {
    if (ending_) return;
    end_.why = why;
    ending_ = Clock::now();
    ::kill(-pid_, SIGTERM);
  }

  pid_t pid_;
  const WorkerOrder& order_;
  const WorkerWatch& watch_;
  Talk talk_;
  Pipe out_, err_;
  WorkerEnd end_;
  std::optional<Clock::time_point> ending_;
};

}  // namespace

Result<WorkerEnd> run_worker(const WorkerOrder& order, const WorkerWatch& watch) {
  RH_TRY(Pipe err, make_pipe());
  Pipe out;
  SpawnPlan plan;
  if (order.output.empty()) {
    RH_TRY(out, make_pipe());
    plan.to(STDOUT_FILENO, out.write);
  } else {
    plan.to_file(STDOUT_FILENO, order.output);
  }
  plan.to(STDERR_FILENO, err.write);
  RH_TRY(const pid_t pid, plan.start(order));
  limit_files(pid, order.most_output);
  return Vigil(pid, order, watch, std::move(out), std::move(err)).keep();
}

Error error_of(const WorkerEnd& end, std::string_view output) {
  switch (end.why) {
    case WorkerEnd::Why::kStopped:
      return {Code::kInterrupted, "stopped before it was done", "", "submit it again"};
    case WorkerEnd::Why::kTooLong:
      return {Code::kLimit, "it took longer than a job may", "",
              "make it smaller, or start the server with a larger --job-time"};
    case WorkerEnd::Why::kTooMuch:
      return {Code::kLimit, "its result is larger than the server takes", "",
              "ask for less, or use the command line"};
    case WorkerEnd::Why::kItself:
      break;
  }
  if (end.signal == SIGXFSZ) {
    return {Code::kLimit, "its files are larger than the server takes", "", "use the command line"};
  }
  if (end.signal != 0) {
    const char* name = ::sigabbrev_np(end.signal);
    return {Code::kInternal,
            fmt::format("the worker was ended by signal {} (SIG{})", end.signal,
                        name == nullptr ? "?" : name),
            "", "submit it again; if it happens again, please report it with the job's files"};
  }
  const auto json = nlohmann::json::parse(output, nullptr, false);
  if (json.is_object() && json.contains("error") && json["error"].is_object()) {
    const auto& error = json["error"];
    const auto text = [&](const char* key) {
      const auto at = error.find(key);
      return at != error.end() && at->is_string() ? at->get<std::string>() : std::string();
    };
    Error told{static_cast<Code>(end.code), text("what"), text("where"), text("fix")};
    return told;
  }
  return {Code::kInternal, fmt::format("the worker ended with exit code {}", end.code), "",
          end.talk.empty() ? "please report it with the job's files" : end.talk};
}

}  // namespace rehearse::serve
