// SPDX-License-Identifier: Apache-2.0
// The machine that the diagnoser does not know. It is not the one of the model: efficiencies and latencies
// are drawn from their priors, GPUs differ by a percent, small jobs are simulated message by
// message, and harmless settings stand in the environment. What is measured there is noisy: durations,
// counters, clocks that are apart, ranks that were not recorded. Deterministic for a seed.
#pragma once

#include "base/error.hpp"
#include "base/random.hpp"
#include "sim/proto/outcome.pb.h"
#include "sim/scenario/scenario.hpp"

namespace rehearse::validation {

// Relative deviations unless said otherwise.
struct MeasurementNoise {
  double step = 0.01;       // each step
  double part = 0.02;       // each part of a rank's breakdown
  double clock = 0.003;     // of a step: error of a rank's clock between calls
  double counter = 0.05;    // of links
  double bandwidth = 0.03;  // of communicators
  double memory = 0.005;
  double missing = 0.08;          // share of ranks that were not recorded
  int64_t offset_ns = 2'000'000;  // of clocks in logs
};

// Ranks up to which the hidden run is simulated message by message.
constexpr int kStepFidelityRanks = 8;

// The job on the hidden machine.
[[nodiscard]] Result<sim::Scenario> hidden(const sim::Scenario& job, uint64_t seed);

// What people would have measured of an outcome: its observable part with noise, and nothing at all of the ranks that were not
// recorded.
[[nodiscard]] pb::Outcome measured(const pb::Outcome& outcome, const MeasurementNoise& noise,
                                   Random& random);

}  // namespace rehearse::validation
