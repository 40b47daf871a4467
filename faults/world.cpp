// SPDX-License-Identifier: Apache-2.0
#include "faults/world.hpp"

#include "base/version.hpp"
#include "faults/check/judge.hpp"
#include "faults/symptoms/classifier.hpp"
#include "sim/simulate.hpp"

namespace rehearse::faults {
namespace {

// A waiting rank does not know for whom it waits.
void withhold_blame(pb::Outcome& outcome) {
  outcome.clear_culprits();
  outcome.clear_findings();
  outcome.mutable_symptom()->clear_reasons();
  for (pb::Wait& wait : *outcome.mutable_waits()) wait.clear_for_ranks();
}

}  // namespace

Result<pb::Outcome> simulate_judged(const sim::Scenario& scenario, sim::Detail detail,
                                    const Rules& rules, Reporter& reporter) {
  RH_TRY(pb::Outcome outcome, sim::simulate(scenario, detail, reporter));
  judge_by_rules(scenario.document, rules, outcome);
  return outcome;
}

void observe(const sim::Scenario& scenario, const Rules& rules, const pb::StepTimes* baseline,
             pb::Outcome& outcome) {
  judge_by_rules(scenario.document, rules, outcome);
  if (baseline != nullptr) *outcome.mutable_baseline_step_time_ns() = *baseline;
  outcome.set_schema("rehearse.outcome/1");
  outcome.set_version(version());
  *outcome.mutable_symptom() = classify(outcome);
  if (scenario.document.blind()) withhold_blame(outcome);
}

World simulated_world(Reporter& reporter) {
  // Shared by the copies of the function; read only.
  const auto rules = std::make_shared<const Result<Rules>>(Rules::load_shipped());
  return {.apply = [](sim::Scenario& scenario,
                      const pb::Patch& patch) { return sim::apply(scenario, patch); },
          .simulate = [&reporter, rules](const sim::Scenario& scenario) -> Result<pb::Outcome> {
            if (!*rules) return tl::unexpected(rules->error());
            return simulate_judged(scenario, sim::Detail::kObserved, **rules, reporter);
          }};
}

}  // namespace rehearse::faults
