// SPDX-License-Identifier: Apache-2.0
// What `rehearse diagnose` is given, sorted by what it is: a scenario or an outcome, and evidence of real runs in files
// and folders (flight recorder dumps, NCCL logs).
#pragma once

#include <string>
#include <vector>

#include "cli/context.hpp"
#include "traces/proto/evidence.pb.h"

namespace rehearse::cli {

struct EvidenceInput {
  std::string main;                           // scenario or outcome; empty: there is none
  std::vector<pb::FlightRecorder> recorders;  // one per rank, the first that was found
  std::vector<pb::NcclLog> logs;
  uint32_t ignored = 0;  // files that hold no evidence

  [[nodiscard]] bool any() const { return !recorders.empty() || !logs.empty(); }
};

// kUsage for two scenarios or outcomes, kBadInput for a folder in which nothing is evidence.
[[nodiscard]] Result<EvidenceInput> sort_inputs(Context& context);

}  // namespace rehearse::cli
