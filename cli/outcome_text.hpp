// SPDX-License-Identifier: Apache-2.0
// An outcome for people: the first line answers the question, details follow. Pure functions.
#pragma once

#include <string>

#include "cli/terminal.hpp"
#include "sim/proto/outcome.pb.h"

namespace rehearse::cli {

// "completed", "wrong-semantics", ...
[[nodiscard]] std::string verdict_name(pb::Verdict verdict);

// "step time 412 ms -> 371 ms (-10.0 %)", or "step time 412 ms" without a baseline, or "no whole
// step".
[[nodiscard]] std::string step_text(const pb::Outcome& outcome);

// The first lines: verdict, step time, symptom, culprits and what the ranks would print.
[[nodiscard]] std::string outcome_head(const pb::Outcome& outcome, const Terminal& terminal);

// Findings as rows below a title; nothing for none.
[[nodiscard]] std::string findings_text(
    const google::protobuf::RepeatedPtrField<pb::OutcomeFinding>& findings,
    const Terminal& terminal);

// Everything: the head, where the time went, who waits for whom, communicators, busiest links,
// findings.
[[nodiscard]] std::string outcome_text(const pb::Outcome& outcome, const Terminal& terminal);

}  // namespace rehearse::cli
