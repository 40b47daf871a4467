// SPDX-License-Identifier: Apache-2.0
// Whether a learner's job is repaired: it is simulated and compared with the healthy one. Gone is the symptom, back is
// the performance (time per sample), and nothing else was given away for it: no work left out, no other machine, no part
// replaced that was in order, no longer wait instead of a repair.
#pragma once

#include "base/error.hpp"
#include "base/reporter.hpp"
#include "faults/lessons/job.hpp"
#include "faults/proto/lab.pb.h"
#include "sim/proto/outcome.pb.h"

namespace rehearse::faults {

// A sample may take this much longer than in the healthy job.
constexpr double kAsGoodAs = 0.02;

// The run of a job as `rehearse run` would show it, against the healthy job's step times (null: none).
[[nodiscard]] Result<pb::Outcome> observe_job(const sim::Scenario& job,
                                              const pb::StepTimes* healthy, Reporter& reporter);

// Category of what is wrong with a run, "healthy" when nothing is; for labs about the static check, what that says.
[[nodiscard]] Result<std::string> symptom_of(const LabJob& lab, const sim::Scenario& job,
                                             const pb::Outcome& outcome);

// `written`: what the learner's files say. Hints, number of checks and score are left to who keeps them.
[[nodiscard]] Result<pb::LabCheck> assess(const LabJob& job, const pb::Scenario& written,
                                          Reporter& reporter);

}  // namespace rehearse::faults
