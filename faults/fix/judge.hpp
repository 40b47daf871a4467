// SPDX-License-Identifier: Apache-2.0
// What a run with a fix shows: does it restore the job as it should be, or does it only look so? Pure functions.
#pragma once

#include <span>
#include <string>

#include "faults/proto/diagnosis.pb.h"
#include "sim/proto/outcome.pb.h"
#include "sim/proto/patch.pb.h"

namespace rehearse::faults {

// A fix restores when the symptom is gone and the mean step is at most this longer than the baseline's.
constexpr double kRestoredWithin = 0.02;

// The runs that a fix is judged by.
struct FixRuns {
  const pb::Outcome& fixed;
  const pb::Outcome& broken;
  const pb::Outcome& baseline;  // of the job as it should be
};

// Fills what the run with the fix shows: verdict, symptom, step time, recovered time, false fix, restores.
void judge_fix(const FixRuns& runs, std::span<const pb::Patch> patches, pb::FixTrial& trial);

// Why a fix only looks like one; empty: it does not.
//   - the run ends with wrong data (verdict wrong-semantics);
//   - it does less than the job as it should be: fewer steps or ranks, fewer bytes or calls in collectives;
//   - all it changes is how long somebody waits, and what was waited for is still there.
[[nodiscard]] std::string false_fix(const FixRuns& runs, std::span<const pb::Patch> patches);

}  // namespace rehearse::faults
