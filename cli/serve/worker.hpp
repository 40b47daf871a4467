// SPDX-License-Identifier: Apache-2.0
// One command of this program as a process of its own: spawned from our own executable with words,
// never through a shell, and never forked from a thread of the server. Whatever it does, the server
// goes on. Its progress comes as lines of JSON on stderr (REHEARSE_PROGRESS=json). Safe to call from
// many threads; blocks until the process has ended.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/error.hpp"

namespace rehearse::serve {

struct WorkerOrder {
  std::vector<std::string> words;  // verb first
  std::filesystem::path folder;    // it runs in
  std::filesystem::path output;    // file for its stdout; empty: WorkerEnd::output
  std::chrono::milliseconds time_limit{};
  uint64_t most_output = 0;  // bytes of stdout, and of any file it writes
};

struct WorkerProgress {
  std::string what;
  uint64_t done = 0, total = 0;
};

struct WorkerWatch {
  std::function<void(const WorkerProgress&)> progress;  // may be empty
  std::function<bool()> stopped;                        // asked often; may be empty
};

struct WorkerEnd {
  enum class Why { kItself, kStopped, kTooLong, kTooMuch };
  Why why = Why::kItself;
  int code = 0;    // exit code
  int signal = 0;  // that ended it; 0: none
  std::string output;
  std::string talk;  // the end of what else it wrote to stderr
};

// kIo when it cannot be started.
[[nodiscard]] Result<WorkerEnd> run_worker(const WorkerOrder& order, const WorkerWatch& watch);

// What went wrong with a worker whose exit code is none of those expected: its own error document
// (`output` is what it printed), or that it was killed, stopped or cut.
[[nodiscard]] Error error_of(const WorkerEnd& end, std::string_view output);

}  // namespace rehearse::serve
