// SPDX-License-Identifier: Apache-2.0
// What NCCL logged about its communicators against what our model decides for the same ranks on a
// platform: channels, transports, rings, the table of latencies and bandwidths, and the choice per
// size. Every difference is listed with the reason as far as the model can tell it. Nothing of the
// log goes into the model but its size, placement, version and environment; when the log does not
// show NCCL_ALGO but its tuning table shows algorithms that were switched off, that is taken as the
// environment and said so.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "platforms/proto/platform.pb.h"
#include "traces/proto/evidence.pb.h"

namespace rehearse::validation {

struct LogDifference {
  std::string communicator;
  std::string what;  // "channels", "AllReduce Ring/Simple bandwidth", "all_reduce 268435456 B", ...
  std::string logged;
  std::string computed;
  std::string why;
};

// One kind of comparison over all communicators.
struct LogCheck {
  std::string id;    // "channels", "transports", "rings", "tuning", "choices", "predicted"
  std::string what;  // in words
  std::size_t n = 0;
  std::size_t mismatches = 0;
  std::vector<double> errors;  // relative, of those that are figures; sorted
  std::string why;             // when nothing could be compared
};

struct LogReport {
  std::vector<LogCheck> checks;
  std::vector<LogDifference> differences;
  std::vector<std::string> assumed;  // what the log does not say
  std::size_t communicators = 0;

  [[nodiscard]] std::size_t mismatches() const;
  [[nodiscard]] std::size_t compared() const;
};

struct LogComparison {
  const pb::Platform& platform;                           // compact, as the catalogue gives it
  const std::map<std::string, std::string>& environment;  // of every rank, over that of the log
};

// kBadInput when no communicator of the log can be placed on the platform (too few GPUs per node)
// or NCCL would refuse its settings.
[[nodiscard]] Result<LogReport> check_log(const pb::NcclLog& log, const LogComparison& with);

}  // namespace rehearse::validation
