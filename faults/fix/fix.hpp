// SPDX-License-Identifier: Apache-2.0
// Fixes tried in simulation: each candidate's fixes are applied to the broken scenario as a person
// would apply them, simulated, and ranked by what they recover. Deterministic.
#pragma once

#include <span>

#include "base/error.hpp"
#include "faults/fault_use.hpp"
#include "faults/proto/diagnosis.pb.h"
#include "faults/symptoms/categories.hpp"
#include "faults/world.hpp"

namespace rehearse::faults {

// A fix restores when the symptom is gone and the mean step is within this of the baseline's.
constexpr double kRestoredWithin = 0.02;

struct FixRequest {
  const sim::Scenario& broken;
  const pb::Outcome& outcome;            // of `broken`
  const pb::Outcome& baseline;           // of the job as it should be
  std::span<const FaultUse> candidates;  // most likely first
  const Categories& categories;
};

// Restoring fixes first, then by time recovered, then by how often the pattern solved this symptom
// in the study, then in the order of the candidates. A fix that cannot be applied or simulated is
// listed last with the reason.
[[nodiscard]] Result<pb::FixReport> try_fixes(const FixRequest& request, const World& world);

}  // namespace rehearse::faults
