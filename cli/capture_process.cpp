// SPDX-License-Identifier: Apache-2.0
#include "cli/capture_process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>

namespace rehearse::cli {
namespace {

std::atomic<pid_t> g_child{0};

constexpr std::array<int, 6> kForwarded = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};

// A signal of the terminal reaches the command by itself; one sent to us does not.
void forward(int signal, siginfo_t* info, void*) {
  const pid_t child = g_child.load();
  if (child > 0 && info != nullptr && info->si_code <= 0) ::kill(child, signal);
}

std::vector<std::string> environment_with(
    const std::vector<std::pair<std::string, std::string>>& settings) {
  std::vector<std::string> out;
  for (char** v = environ; v != nullptr && *v != nullptr; ++v) {
    const std::string_view whole = *v;
    const std::string_view name = whole.substr(0, whole.find('='));
    bool replaced = false;
    for (const auto& [set, value] : settings) replaced = replaced || set == name;
    if (!replaced) out.emplace_back(whole);
  }
  for (const auto& [name, value] : settings) out.push_back(fmt::format("{}={}", name, value));
  return out;
}

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> out;
  out.reserve(words.size() + 1);
  for (std::string& word : words) out.push_back(word.data());
  out.push_back(nullptr);
  return out;
}

Ended wait_for(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFSIGNALED(status)) return {0, WTERMSIG(status)};
  return {WEXITSTATUS(status), 0};
}

}  // namespace

Result<Ended> run_command(const std::vector<std::string>& command,
                          const std::vector<std::pair<std::string, std::string>>& environment,
                          ChildOutput output) {
  std::vector<std::string> words = command, variables = environment_with(environment);
  std::vector<char*> argv = pointers(words), envp = pointers(variables);
  std::array<struct sigaction, kForwarded.size()> before{};
  struct sigaction action {};
  sigfillset(&action.sa_mask);
  action.sa_sigaction = forward;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  // What comes before the command is there to get it waits until it is.
  sigset_t forwarded, mask;
  sigemptyset(&forwarded);
  for (size_t i = 0; i < kForwarded.size(); ++i) {
    ::sigaction(kForwarded[i], nullptr, &before[i]);
    sigaddset(&forwarded, kForwarded[i]);
  }
  ::sigprocmask(SIG_BLOCK, &forwarded, &mask);
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  ::posix_spawnattr_setsigmask(&attributes, &mask);
  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  if (output == ChildOutput::kToStderr) {
    ::posix_spawn_file_actions_adddup2(&files, STDERR_FILENO, STDOUT_FILENO);
  }
  pid_t child = 0;
  const int error = ::posix_spawnp(&child, argv[0], &files, &attributes, argv.data(), envp.data());
  ::posix_spawn_file_actions_destroy(&files);
  ::posix_spawnattr_destroy(&attributes);
  if (error != 0) {
    ::sigprocmask(SIG_SETMASK, &mask, nullptr);
    return fail(error == ENOENT ? Code::kMissingInput : Code::kIo,
                std::string("cannot be started: ") + std::strerror(error), command.front(),
                "name a program that is on PATH, behind --");
  }
  g_child.store(child);
  for (const int signal : kForwarded) ::sigaction(signal, &action, nullptr);
  ::sigprocmask(SIG_SETMASK, &mask, nullptr);
  const Ended ended = wait_for(child);
  g_child.store(0);
  for (size_t i = 0; i < kForwarded.size(); ++i) ::sigaction(kForwarded[i], &before[i], nullptr);
  return ended;
}

int end_as(const Ended& ended) {
  if (ended.signal == 0) return ended.code;
  // The command has left its core file, if any.
  const rlimit none{};
  ::setrlimit(RLIMIT_CORE, &none);
  ::signal(ended.signal, SIG_DFL);
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, ended.signal);
  ::sigprocmask(SIG_UNBLOCK, &one, nullptr);
  ::raise(ended.signal);
  return 128 + ended.signal;
}

std::string version_of(const std::string& launcher) {
  std::array<int, 2> pipe{};
  if (::pipe2(pipe.data(), O_CLOEXEC) != 0) return {};
  std::vector<std::string> words = {launcher, "--version"};
  std::vector<char*> argv = pointers(words);
  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawn_file_actions_adddup2(&files, pipe[1], STDOUT_FILENO);
  ::posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  ::posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  pid_t child = 0;
  const int error = ::posix_spawnp(&child, argv[0], &files, nullptr, argv.data(), environ);
  ::posix_spawn_file_actions_destroy(&files);
  ::close(pipe[1]);
  std::string text;
  std::array<char, 4096> chunk{};
  for (ssize_t n = 0; error == 0 && text.size() < (64 << 10);) {
    n = ::read(pipe[0], chunk.data(), chunk.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    text.append(chunk.data(), static_cast<size_t>(n));
  }
  ::close(pipe[0]);
  if (error == 0) wait_for(child);
  return text;
}

}  // namespace rehearse::cli
