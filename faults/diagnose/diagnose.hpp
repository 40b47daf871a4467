// SPDX-License-Identifier: Apache-2.0
// From an outcome to its cause. Rules propose faults and places (candidates.hpp); each is injected
// into the healthy scenario and simulated, and the result compared with the evidence
// (likeness.hpp). A fault with a strength is simulated at several until the step time fits. The
// score is the share of what sets the evidence apart from the baseline that the fault explains: (L
// - L0) / (1 - L0), where L is the likeness of the simulated fault and L0 that of the baseline;
// without a baseline it is L. The diagnosis never reads which patches made the evidence.
// Deterministic.
#pragma once

#include "base/error.hpp"
#include "faults/fault_catalogue.hpp"
#include "faults/fault_use.hpp"
#include "faults/proto/diagnosis.pb.h"
#include "faults/world.hpp"

namespace rehearse::faults {

struct DiagnoseRequest {
  const pb::Outcome& evidence;
  const sim::Scenario& healthy;            // the job as it should be
  const pb::Launch* configured = nullptr;  // expanded launch as it really was; null: unknown
  const pb::Outcome* baseline = nullptr;   // outcome of `healthy`; null: unknown
  uint32_t max_simulations = 120;
};

// Causes by score, one per fault. A healthy outcome has none. A candidate that cannot be simulated
// is ranked behind the others with what the simulator said.
[[nodiscard]] Result<pb::Diagnosis> diagnose(const DiagnoseRequest& request,
                                             const FaultCatalogue& catalogue, const World& world);

}  // namespace rehearse::faults
