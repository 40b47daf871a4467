// SPDX-License-Identifier: Apache-2.0
// How sure a predicted step time is, and how surely a fix helps: the scenario is simulated once for each joint draw over
// calibrated parameters (or their priors), and each result is moved by an error drawn from what predictions of that kind
// of change were off by (change.hpp). With t a drawn step time, c the part of it that the error acts on and e the error,
//
//   t' = t - c + c exp(e)
//
// The error of changes of algorithm, transport, bandwidth and scale acts on communication that nothing hides, that of layout and
// compute on the whole step. One mechanism for `run`, `sweep` and `fix`. Deterministic for a seed; runs are forked
// children, several at a time.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/reporter.hpp"
#include "faults/proto/diagnosis.pb.h"
#include "sim/proto/outcome.pb.h"
#include "sim/scenario/scenario.hpp"
#include "validation/certainty/change.hpp"

namespace rehearse::validation {

// What is drawn from.
struct Drawing {
  std::vector<pb::Patch> patches;  // one per draw
  std::string from;                // "priors", or the platform of a calibration
  std::string note;
  uint64_t seed = 0;
  unsigned jobs = 1;  // runs at a time
};
// `count` draws for a scenario, with its seed. kUsage when the calibration holds fewer. Null: priors, around what the
// scenario's platform states.
[[nodiscard]] Result<Drawing> drawing_of(const pb::Calibration* calibration,
                                         const pb::Scenario& scenario, uint32_t count);

// One run of a draw: its mean step and how much of that is communication that nothing hides, ns.
struct DrawnStep {
  double step = 0;
  double communication = 0;
};
// By draw; nothing where the run does not complete.
using DrawnSteps = std::vector<std::optional<DrawnStep>>;
[[nodiscard]] Result<DrawnSteps> drawn_steps(const sim::Scenario& scenario, const Drawing& drawing,
                                             Reporter& reporter);

// The drawn steps with the errors of a kind of change on top; null: none.
[[nodiscard]] std::vector<std::optional<double>> with_error(const DrawnSteps& steps,
                                                            const Drawing& drawing,
                                                            const ChangeError* error);

// Range of the step time of `changed`, of which `base` is what it was before. kBadInput when no run completes.
[[nodiscard]] Result<pb::Band> step_time_band(const sim::Scenario& base,
                                              const sim::Scenario& changed, const Drawing& drawing,
                                              Reporter& reporter);

// Fills `certainty` and `band` of the best fixes of a report: those that recover time or restore, at most `most`.
// `broken` is what they were tried on.
[[nodiscard]] Result<void> add_certainty(const sim::Scenario& broken, const Drawing& drawing,
                                         int most, Reporter& reporter, pb::FixReport& report);

}  // namespace rehearse::validation
