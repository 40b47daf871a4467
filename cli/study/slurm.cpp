// SPDX-License-Identifier: Apache-2.0
#include "cli/study/slurm.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "base/atomic_file.hpp"
#include "base/text.hpp"

namespace rehearse::cli {
namespace {

constexpr auto kBetweenLooks = std::chrono::seconds(1);

// A word for the shell of the batch script.
std::string quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

// Text between quotes of a #SBATCH line that names a file, where % would begin a pattern.
std::string between_quotes(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '%') out += '%';
    out += c;
  }
  return out;
}

// Standard output of a command; its own messages go where ours go.
Result<std::string> output_of(const std::vector<std::string>& words) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    return fail(Code::kIo, std::string("cannot make a pipe: ") + std::strerror(errno));
  }
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  pid_t pid = 0;
  const int error =
      ::posix_spawnp(&pid, words.front().c_str(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  std::string out;
  if (error == 0) {
    std::array<char, 4096> chunk{};
    ssize_t n = 0;
    while ((n = ::read(ends[0], chunk.data(), chunk.size())) > 0 || (n < 0 && errno == EINTR)) {
      if (n > 0) out.append(chunk.data(), static_cast<size_t>(n));
    }
  }
  ::close(ends[0]);
  if (error != 0) {
    return fail(Code::kMissingInput,
                fmt::format("cannot start {}: {}", words.front(), std::strerror(error)), {},
                "is this a machine of a Slurm cluster? --shard i/N works without one");
  }
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    return fail(Code::kIo, fmt::format("{} failed", words.front()), {}, "see its message above");
  }
  return out;
}

// Tasks of the array that wait or run. An array that is long gone is unknown to squeue: none.
uint64_t in_queue(const std::string& id) {
  const auto text = output_of({"squeue", "--noheader", "--array", "--jobs", id, "--format", "%i"});
  if (!text) return 0;
  return static_cast<uint64_t>(std::count(text->begin(), text->end(), '\n'));
}

}  // namespace

std::string batch_script(const ArrayJob& job) {
  std::string out = "#!/bin/bash\n#SBATCH --job-name=rehearse-sweep\n";
  out += fmt::format("#SBATCH --array=0-{}", job.tasks - 1);
  if (job.at_once > 0) out += fmt::format("%{}", job.at_once);
  out += fmt::format("\n#SBATCH --ntasks=1\n#SBATCH --cpus-per-task={}\n", job.jobs);
  if (!job.partition.empty()) out += "#SBATCH --partition=" + job.partition + "\n";
  out += "#SBATCH --requeue\n#SBATCH --open-mode=append\n";
  out += "#SBATCH --output=\"" + between_quotes(job.folder.string()) + "/log/%a.txt\"\n";
  out += fmt::format("exec {} sweep {} --shard \"$SLURM_ARRAY_TASK_ID/{}\" --jobs {} -o {}",
                     quoted(job.program), quoted(job.study), job.tasks, job.jobs,
                     quoted(job.folder.string()));
  for (const std::string& option : job.options) out += " " + quoted(option);
  return out + "\n";
}

Result<void> run_array(const ArrayJob& job, uint64_t total, uint32_t again, const Missing& missing,
                       Reporter& reporter) {
  const auto script = job.folder / "sweep.sbatch";
  std::error_code ec;
  std::filesystem::create_directories(job.folder / "log", ec);
  if (auto written = write_file(script, batch_script(job), Overwrite::kReplace); !written) {
    return written;
  }
  for (uint32_t round = 0; round <= again; ++round) {
    RH_TRY(const std::string answer, output_of({"sbatch", "--parsable", script.string()}));
    const std::string id = answer.substr(0, answer.find_first_of(";\n"));
    reporter.note(fmt::format("submitted {} tasks as job {}", job.tasks, id));
    while (true) {
      RH_TRY(const uint64_t left, missing(Tasks::kAtWork));
      reporter.progress("points", total - left, total);
      if (left == 0) return {};
      if (in_queue(id) == 0) break;
      if (reporter.interrupted()) {
        return fail(Code::kInterrupted, "stopped following", id,
                    "the job goes on; scancel ends it, sweep --merge collects what is there");
      }
      std::this_thread::sleep_for(kBetweenLooks);
    }
    RH_TRY(const uint64_t left, missing(Tasks::kGone));
    if (left == 0) return {};
    reporter.note(fmt::format("{} points were left behind by job {}", left, id));
  }
  return fail(Code::kLimit, "points are still missing after the last submission",
              job.folder.string(), "look at log/ there, then run the same command again");
}

}  // namespace rehearse::cli
