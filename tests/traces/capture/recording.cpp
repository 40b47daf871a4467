// SPDX-License-Identifier: Apache-2.0
#include "tests/traces/capture/recording.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <fstream>
#include <sstream>
#include <thread>

namespace rehearse::tests {
namespace {

namespace fs = std::filesystem;

std::string text_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

void finish(pid_t child, const fs::path& folder, Run& run) {
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  run.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  run.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  run.out = text_of(folder / "out");
  run.err = text_of(folder / "err");
}

}  // namespace

Recording::Recording() : folder(temporary.path / "capture") {
  for (const char* door :
       {"CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH", "NCCL_PROFILER_PLUGIN"}) {
    environment_[door] = CAPTURE_LIBRARY;
  }
  environment_["REHEARSE_CAPTURE_FOLDER"] = folder.string();
  environment_["REHEARSE_CAPTURE_FLUSH_MS"] = "20";
  environment_["REHEARSE_CAPTURE_CUPTI"] = FAKE_CUPTI;
}

Recording& Recording::with(const std::string& name, const std::string& value) {
  environment_[name] = value;
  if (name == "REHEARSE_CAPTURE_FOLDER") folder = value;
  return *this;
}

pid_t Recording::start(const std::vector<std::string>& words, Run&) {
  std::vector<std::string> arguments = {WATCHED}, variables;
  arguments.insert(arguments.end(), words.begin(), words.end());
  for (char** v = environ; *v != nullptr; ++v) {
    const std::string whole = *v;
    const std::string name = whole.substr(0, whole.find('='));
    // The machine's own job is not part of the test.
    if (environment_.count(name) > 0 || name.starts_with("SLURM_") || name == "RANK") continue;
    variables.push_back(whole);
  }
  for (const auto& [name, value] : environment_) variables.push_back(name + "=" + value);
  std::vector<char*> argv, envp;
  for (std::string& a : arguments) argv.push_back(a.data());
  for (std::string& v : variables) envp.push_back(v.data());
  argv.push_back(nullptr);
  envp.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  const int flags = O_WRONLY | O_CREAT | O_TRUNC;
  posix_spawn_file_actions_addopen(&files, 1, (temporary.path / "out").c_str(), flags, 0600);
  posix_spawn_file_actions_addopen(&files, 2, (temporary.path / "err").c_str(), flags, 0600);
  pid_t child = 0;
  REQUIRE(posix_spawn(&child, WATCHED, &files, nullptr, argv.data(), envp.data()) == 0);
  posix_spawn_file_actions_destroy(&files);
  return child;
}

Run Recording::run(const std::vector<std::string>& words) {
  Run run;
  finish(start(words, run), temporary.path, run);
  return run;
}

Run Recording::run_and_kill(const std::vector<std::string>& words, size_t bytes) {
  Run run;
  const pid_t child = start(words, run);
  for (int tries = 0; tries < 2000; ++tries) {
    size_t there = 0;
    for (const fs::path& file : files()) there += fs::file_size(file);
    if (there >= bytes) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  kill(child, SIGKILL);
  finish(child, temporary.path, run);
  return run;
}

std::vector<fs::path> Recording::files() const {
  std::vector<fs::path> out;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().extension() == ".capture") out.push_back(entry.path());
  }
  std::sort(out.begin(), out.end());
  return out;
}

std::vector<pb::CaptureRecord> Recording::records() const {
  std::vector<pb::CaptureRecord> out;
  for (const fs::path& file : files()) {
    pb::CaptureFile decoded;
    REQUIRE(decoded.ParseFromString(text_of(file)));
    out.insert(out.end(), decoded.records().begin(), decoded.records().end());
  }
  return out;
}

Result<traces::Imported> Recording::import() const {
  SilentReporter silent;
  return traces::import_files({folder}, {}, silent);
}

std::map<uint32_t, std::string> names_of(const std::vector<pb::CaptureRecord>& records) {
  std::map<uint32_t, std::string> names;
  for (const pb::CaptureRecord& r : records) {
    if (r.has_string()) names[r.string().id()] = r.string().text();
  }
  return names;
}

size_t lines_of(const std::string& text) {
  return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
}

}  // namespace rehearse::tests
