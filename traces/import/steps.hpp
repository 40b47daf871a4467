// SPDX-License-Identifier: Apache-2.0
// Training steps of a rank that recorded none, from the period of its communication: the same
// collectives on the same communicators with the same sizes come again every step.
#pragma once

#include <string>
#include <vector>

#include "base/finding.hpp"
#include "traces/model/trace.hpp"

namespace rehearse::traces {

// At least two whole periods, else nothing. Steps are numbered from 0 and go from the start of a
// period's first collective to the start of the next period's.
[[nodiscard]] std::vector<Step> steps_from_calls(const Operations& ops);

// A range whose name says that it is a step (capture_file/step_names.hpp).
struct NamedStep {
  int family = 0;  // of StepName
  Step step;
};
// Those of the surest kind of name, one after the other; what begins inside another one is a finding at `where`.
[[nodiscard]] std::vector<Step> steps_from_names(const std::vector<NamedStep>& named,
                                                 const std::string& where, Findings& findings);

}  // namespace rehearse::traces
