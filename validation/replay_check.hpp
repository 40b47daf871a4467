// SPDX-License-Identifier: Apache-2.0
// A recorded job replayed as recorded, compared with what was measured. The recorded times of NCCL's kernels are not
// used to predict: a call starts when its rank comes to it and ends when the model says so. Beside it stands what a
// naive sum would say: the longest stream of each rank, kernel after kernel, with nobody waiting for anybody.
//
// What it shows is order and skew between ranks, and how well the program's edges explain the host; a trace of small
// messages says nothing about bandwidth.
#pragma once

#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/finding.hpp"
#include "base/reporter.hpp"
#include "sim/scenario/scenario.hpp"

namespace rehearse::validation {

struct RankStep {
  uint32_t rank = 0;
  uint32_t step = 0;
  Nanos measured = 0;
  Nanos predicted = 0;
  Nanos naive = 0;
  // How long the rank's host threads waited for streams in the replay. Where nothing says that they do, their recorded
  // time is all work, NCCL's included, and the prediction is the recording.
  Nanos waited = 0;
};

// One call of one rank; times from the start of the recording.
struct CallTimes {
  std::string communicator;
  std::string collective;
  int64_t sequence = 0;
  uint32_t rank = 0;
  Bytes bytes = 0;
  Nanos measured_start = 0, measured_end = 0;
  Nanos predicted_start = 0, predicted_end = 0;
};

struct ReplayReport {
  std::vector<RankStep> steps;   // by step, then rank
  std::vector<CallTimes> calls;  // in order of their measured ends, then rank
  std::string platform;
  Bytes largest = 0;  // message
};

// kBadInput when the trace has no steps or the replay does not complete.
[[nodiscard]] Result<ReplayReport> check_replay(const sim::Scenario& scenario, Reporter& reporter);

// Do host threads wait for streams in it? Without that its step times predict nothing.
[[nodiscard]] bool predicts_steps(const ReplayReport& report);

// Relative errors of the steps, sorted ascending.
[[nodiscard]] std::vector<double> step_errors(const ReplayReport& report, Nanos RankStep::*what);

}  // namespace rehearse::validation
