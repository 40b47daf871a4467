// SPDX-License-Identifier: Apache-2.0
// What `rehearse capture` changes about a command: variables that open the doors of the capture library and
// let NCCL write down what it sees, and what a launcher needs to hand them on to other machines. Pure but
// for asking mpirun which one it is.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"

namespace rehearse::cli {

struct CaptureRequest {
  std::filesystem::path library;  // absolute
  std::filesystem::path folder;   // absolute
  std::string steps;              // "3-5", "10s-20s"; may be empty
  std::vector<std::string> with;  // words of --with
};

struct CapturePlan {
  std::vector<std::pair<std::string, std::string>> environment;  // to be set
  std::vector<std::string> command;
  // What is left as the user has it, what to look after.
  struct Note {
    std::string what;
    std::string advice;
  };
  std::vector<Note> notes;
};

// The value of a variable, if it is set.
using Environment = std::function<std::optional<std::string>(const std::string&)>;
// What `LAUNCHER --version` prints; empty when it cannot be run.
using VersionOf = std::function<std::string(const std::string& launcher)>;

[[nodiscard]] CapturePlan plan_capture(const CaptureRequest& request,
                                       const std::vector<std::string>& command,
                                       const Environment& environment, const VersionOf& version_of);

// kUsage when --steps or --with makes no sense.
[[nodiscard]] Result<void> check_request(const CaptureRequest& request);

// The shared object: beside the program, or where `cmake --install` puts it.
[[nodiscard]] Result<std::filesystem::path> capture_library();

}  // namespace rehearse::cli
