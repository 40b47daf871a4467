// SPDX-License-Identifier: Apache-2.0
// Runs the command that is recorded as if it had been started by hand: its output, exit code and signals are
// its own.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"

namespace rehearse::cli {

struct Ended {
  int code = 0;    // exit code
  int signal = 0;  // that ended it; 0: none
};

// kToStderr keeps our own stdout free for a document.
enum class ChildOutput { kAsItIs, kToStderr };

// Waits for it; signals sent to us go to it. kMissingInput when there is no such program.
[[nodiscard]] Result<Ended> run_command(
    const std::vector<std::string>& command,
    const std::vector<std::pair<std::string, std::string>>& environment, ChildOutput output);

// Ends this process by the same signal as the command, so that whoever started us sees the same.
[[nodiscard]] int end_as(const Ended& ended);

// What `LAUNCHER --version` prints on stdout; empty when it cannot be run.
[[nodiscard]] std::string version_of(const std::string& launcher);

}  // namespace rehearse::cli
