// SPDX-License-Identifier: Apache-2.0
// Stragglers in a recording, without a healthy run to compare with: who has more work, or more gaps, than the others, always
// or from step to step. A worker's work in a step is taken apart into what its place in the pipeline has more in all steps, what
// the worker itself (or its node) has more than its place in all steps, and what is left, another one in each step.
// Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "faults/fault_catalogue.hpp"
#include "faults/proto/diagnosis.pb.h"
#include "traces/model/trace.hpp"

namespace rehearse::faults {

struct TraceStragglers {
  // fixed-rank, fixed-stage, random (work), rotating (gaps); empty: nobody stands out.
  std::string kind;
  std::vector<uint32_t> ranks;  // of the fixed ones
  // What the slowest has more than the mean, as a share of the mean work of a step.
  double by_stage = 0, by_rank = 0, by_step = 0, by_gaps = 0;
  uint32_t steps = 0;
};

// Steps that every recorded rank has. Nobody stands out in a recording of one rank or without steps.
[[nodiscard]] TraceStragglers find_stragglers(const traces::Trace& trace);

// The same as a diagnosis: faults of the catalogue whose patches make stragglers of that kind, by rules.
[[nodiscard]] pb::Diagnosis diagnose_trace(const traces::Trace& trace,
                                           const FaultCatalogue& catalogue);

}  // namespace rehearse::faults
