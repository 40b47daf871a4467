// SPDX-License-Identifier: Apache-2.0
// The static check: rules applied to a configuration, without running it. Pure functions.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "faults/check/rules.hpp"
#include "faults/proto/check.pb.h"
#include "sim/proto/scenario.pb.h"

namespace rehearse::faults {

// Findings with errors first, each once with all places it holds for. `subject` names what was checked; `elsewhere`
// counts ranks of the job that the document does not have.
[[nodiscard]] pb::CheckReport check(const pb::Scenario& document, const Rules& rules,
                                    const std::string& subject, uint32_t elsewhere = 0);

// Findings of the rules that say something of a run (CheckRule.verdict), errors first.
[[nodiscard]] std::vector<pb::CheckFinding> findings_with_verdict(const pb::Scenario& document,
                                                                  const Rules& rules);

// The assignments of a report's findings, in order; a path is assigned once, by the first finding.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> fixes_in(
    const pb::CheckReport& report);

}  // namespace rehearse::faults
