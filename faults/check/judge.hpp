// SPDX-License-Identifier: Apache-2.0
// What the static check says of a run: a job that could not have started is rejected, one that trains something else
// than intended has wrong semantics, whatever its timeline looks like.
#pragma once

#include "faults/check/rules.hpp"
#include "sim/proto/outcome.pb.h"
#include "sim/proto/scenario.pb.h"

namespace rehearse::faults {

// Applies the rules that have a verdict; findings are added with their category, and the first sets the verdict of a
// run that did not fail by itself.
void judge_by_rules(const pb::Scenario& document, const Rules& rules, pb::Outcome& outcome);

}  // namespace rehearse::faults
