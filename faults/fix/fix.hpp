// SPDX-License-Identifier: Apache-2.0
// Fixes tried in simulation: each candidate's fixes, and two of them together where none alone is enough, are applied to
// the broken scenario as a person would apply them, simulated, judged (judge.hpp) and ranked by what they recover. Where that
// does not restore the job either, what the best one leaves is looked at anew.
// Deterministic.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "faults/fault_use.hpp"
#include "faults/fix/judge.hpp"
#include "faults/proto/diagnosis.pb.h"
#include "faults/symptoms/categories.hpp"
#include "faults/world.hpp"

namespace rehearse::faults {

// A fix that its author wants to be checked.
struct OwnFix {
  std::string text;  // as written
  std::vector<pb::Patch> patches;
};

// Likely causes of what is left of a job after a fix, most likely first.
using LookAgain = std::function<Result<std::vector<FaultUse>>(const sim::Scenario& repaired,
                                                              const pb::Outcome& outcome)>;

struct FixRequest {
  const sim::Scenario& broken;
  const pb::Outcome& outcome;            // of `broken`
  const pb::Outcome& baseline;           // of the job as it should be
  std::span<const FaultUse> candidates;  // most likely first
  const Categories& categories;
  std::span<const OwnFix> own = {};
  LookAgain look_again = {};  // empty: one look is all
};

// Restoring fixes first, then by time recovered, then by how often the pattern solved this symptom in the study, then in
// the order of own fixes and candidates; false fixes after all others. A fix that cannot be applied or simulated is listed
// last with the reason. Fixes of several candidates that change the same are tried once.
[[nodiscard]] Result<pb::FixReport> try_fixes(const FixRequest& request, const World& world);

// Merges `more`, which is of a less likely cause, into a report: each was tried in the job that its own cause makes, so what they
// recover is not compared. Those that restore first, of them those of the likelier cause.
void add_fixes(pb::FixReport more, pb::FixReport& report);

}  // namespace rehearse::faults
