// SPDX-License-Identifier: Apache-2.0
// Which faults, at which places, could explain an outcome: rules that need no simulation. A fault
// is a candidate when its catalogue entry lists the symptom and the visible configuration does not
// contradict it. Platform state (a dead port, a slow GPU) is not visible; the launch configuration
// is.
#pragma once

#include <string>
#include <vector>

#include "base/error.hpp"
#include "faults/fault_use.hpp"
#include "sim/proto/outcome.pb.h"

namespace rehearse::faults {

struct Candidate {
  FaultUse use;
  // 0.8 to 1 for the symptom, + 1 when the configuration shows the fault's settings, + 0.5 when a
  // suspect of the evidence is the place. Orders the trials; it is not the score.
  double prior = 0;
  std::vector<std::string> evidence;
};

struct Clues {
  const pb::Outcome& outcome;    // observable part
  const pb::Symptom& symptom;    // of that outcome
  const pb::Scenario& healthy;   // expanded document without the fault
  const pb::Launch* configured;  // as the job really was started; null: unknown
};

// Highest prior first, then by id and parameters; at most `kPlacesPerFault` places of each fault.
[[nodiscard]] Result<std::vector<Candidate>> find_candidates(const Clues& clues,
                                                             const FaultCatalogue& catalogue);
constexpr size_t kPlacesPerFault = 12;

}  // namespace rehearse::faults
