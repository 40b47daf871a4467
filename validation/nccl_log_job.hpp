// SPDX-License-Identifier: Apache-2.0
// The ranks of a logged communicator on a platform: hosts in order of rank are nodes, devices are
// GPUs, variables are those that the log shows, those given, and NCCL_ALGO where the tuning table
// of the log shows algorithms that were switched off.
#pragma once

#include <string>
#include <vector>

#include "base/error.hpp"
#include "sim/proto/scenario.pb.h"
#include "traces/model/trace.hpp"
#include "validation/nccl_log.hpp"

namespace rehearse::validation {

struct LogJob {
  pb::Platform platform;  // expanded
  pb::Launch launch;      // one entry per rank
  traces::Communicator communicator;
};

// Adds to `assumed` what the log does not say. kBadInput when the platform has too few GPUs, kLimit
// above 65,536 ranks.
[[nodiscard]] Result<LogJob> place_log(const pb::NcclLog& log,
                                       const pb::NcclCommunicator& communicator,
                                       const LogComparison& with,
                                       std::vector<std::string>& assumed);

}  // namespace rehearse::validation
