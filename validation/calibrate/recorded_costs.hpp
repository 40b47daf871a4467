// SPDX-License-Identifier: Apache-2.0
// NCCL's own costs of a communicator as evidence has them, in one shape: what a tuner plugin was shown for calls (captures
// with the tuner's recorder), or the table of latencies and bandwidths that NCCL logs (NCCL_DEBUG_SUBSYS=TUNING). They say
// what NCCL believed of the machine, never how long anything took. Pure functions.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "sim/nccl/tuning.hpp"
#include "traces/proto/evidence.pb.h"

namespace rehearse::validation {

struct RecordedCost {
  sim::Variant variant;
  // A call of this size and its predicted time; 0: the cell's latency and bandwidth as printed.
  int64_t bytes = 0;
  int pipe_ops = 1;
  double us = 0;
  double gbps = 0;
};

struct RecordedCosts {
  std::string where;  // "rank0.capture, communicator 0xabc0"
  uint32_t ranks = 0;
  uint32_t nodes = 0;
  std::string nccl_version;  // "": not recorded
  std::map<std::string, std::string> env;
  std::vector<RecordedCost> costs;  // of what was available, in the order recorded
};

// One per communicator that has costs and says how many ranks and nodes it has; `unplaced` counts the others.
[[nodiscard]] std::vector<RecordedCosts> recorded_costs(const pb::Evidence& evidence,
                                                        size_t& unplaced);

}  // namespace rehearse::validation
