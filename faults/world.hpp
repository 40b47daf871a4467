// SPDX-License-Identifier: Apache-2.0
// What diagnosis and fixes need of the simulator, as functions, so that their logic can be tested
// without an engine.
#pragma once

#include <functional>

#include "base/error.hpp"
#include "base/reporter.hpp"
#include "faults/check/rules.hpp"
#include "sim/proto/outcome.pb.h"
#include "sim/scenario/scenario.hpp"
#include "sim/simulate.hpp"

namespace rehearse::faults {

struct World {
  std::function<Result<void>(sim::Scenario&, const pb::Patch&)> apply;
  std::function<Result<pb::Outcome>(const sim::Scenario&)> simulate;
};

// A run with what the static check says of it (faults/check/judge.hpp).
[[nodiscard]] Result<pb::Outcome> simulate_judged(const sim::Scenario& scenario, sim::Detail detail,
                                                  const Rules& rules, Reporter& reporter);

// Completes an outcome that was just simulated: what the static check says of the run, the step times it is compared
// with (null: none), schema, version and the symptom. Of a blind scenario who is to blame, and why, is left out.
void observe(const sim::Scenario& scenario, const Rules& rules, const pb::StepTimes* baseline,
             pb::Outcome& outcome);

// sim::apply and simulate_judged with the shipped rules: what can be observed of a run (Detail::kObserved). The reporter must outlive the World.
[[nodiscard]] World simulated_world(Reporter& reporter);

}  // namespace rehearse::faults
