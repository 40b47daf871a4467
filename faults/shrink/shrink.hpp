// SPDX-License-Identifier: Apache-2.0
// The smallest scenario that fails as a given one does, by delta debugging: parts are left out in ever smaller groups,
// what still fails for the same cause is kept, until no single rank, node, step, collective, operation, allocation,
// setting, variable or patch can go (1-minimal). Each try is a whole simulation of what would be written. Deterministic.
#pragma once

#include <functional>
#include <string>

#include "base/error.hpp"
#include "base/reporter.hpp"
#include "faults/shrink/cause.hpp"
#include "sim/shrink/job.hpp"

namespace rehearse::faults {

// One reduction that was kept.
struct Reduction {
  std::string what;   // "ranks 64 -> 3", "without memory and kernels"
  sim::JobSize size;  // afterwards
  uint32_t runs = 0;  // simulated so far
};

struct ShrinkOptions {
  std::string symptom;  // to keep; empty: that of the scenario
  uint32_t max_runs = 20'000;
  std::function<void(const Reduction&)> told = {};  // called for each reduction
};

struct Shrunk {
  sim::Job job;
  sim::Rendered rendered;
  pb::Outcome outcome;  // of what was rendered
  FailureCause cause;   // in numbers of the whole scenario
  sim::JobSize before, after;
  uint32_t runs = 0;
  bool minimal = true;  // false: max_runs came first
};

// kBadInput when the scenario does not show the symptom or cannot be written down in parts.
[[nodiscard]] Result<Shrunk> shrink(const sim::Scenario& scenario, const ShrinkOptions& options,
                                    Reporter& reporter);

// Does the job, put together, fail for this cause?
[[nodiscard]] Result<bool> still_fails(const sim::Job& job, const FailureCause& cause,
                                       Reporter& reporter);

}  // namespace rehearse::faults
