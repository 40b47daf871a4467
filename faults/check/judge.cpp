// SPDX-License-Identifier: Apache-2.0
#include "faults/check/judge.hpp"

#include "faults/check/check.hpp"

namespace rehearse::faults {

void judge_by_rules(const pb::Scenario& document, const Rules& rules, pb::Outcome& outcome) {
  for (const pb::CheckFinding& finding : findings_with_verdict(document, rules)) {
    pb::OutcomeFinding& row = *outcome.add_findings();
    row.set_id(finding.rule());
    row.set_severity(finding.severity());
    row.set_count(1);
    row.set_first(finding.where() + ": " + finding.what());
    row.set_advice(finding.fix());
    row.set_category(finding.category());
    if (outcome.verdict() != pb::COMPLETED) continue;
    const bool rejected = finding.verdict() == "rejected";
    outcome.set_verdict(rejected ? pb::REJECTED : pb::WRONG_SEMANTICS);
    pb::Culprit& culprit = *outcome.add_culprits();
    culprit.set_kind("configuration");
    culprit.set_why(finding.what());
    if (!rejected) continue;
    pb::ErrorText& text = *outcome.add_error_text();
    text.set_text(finding.why().empty() ? finding.what() : finding.why());
  }
}

}  // namespace rehearse::faults
