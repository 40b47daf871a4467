// SPDX-License-Identifier: Apache-2.0
// What makes two failures the same: verdict, symptom, phase and who is to blame for what. Names of ranks and nodes,
// which call it is, sizes and times may differ. Pure functions.
#pragma once

#include <functional>
#include <set>
#include <string>

#include "sim/proto/outcome.pb.h"

namespace rehearse::faults {

struct FailureCause {
  pb::Verdict verdict = pb::VERDICT_UNSPECIFIED;
  std::string symptom;
  pb::Phase phase = pb::PHASE_UNSPECIFIED;
  // "rank 11: comes to on with of bytes; the others disagree": without names of calls and numbers.
  std::set<std::string> culprits;
};

// Numbers of ranks and nodes as they were in the scenario that the run was made from.
struct Renumbering {
  std::function<uint32_t(uint32_t)> rank, node;
};

[[nodiscard]] FailureCause cause_of(const pb::Outcome& outcome, const Renumbering& numbers);
// Does a smaller run fail for the cause of the whole one? It has some of its culprits and no other.
[[nodiscard]] bool same_cause(const FailureCause& whole, const FailureCause& smaller);

}  // namespace rehearse::faults
