// SPDX-License-Identifier: Apache-2.0
// Patches that hold for an interval of simulated time, and transforms that act on the run: turned into a Schedule.
// At each moment the platform is the scenario's with the patches that hold then applied in order; the schedule has
// what differs from the moment before. Only resources change in the middle of a run (bandwidths, ports and links that
// are down, speeds): what NCCL and the framework decide at start stays as decided.
#pragma once

#include <vector>

#include "sim/scenario/scenario.hpp"
#include "sim/schedule.hpp"

namespace rehearse::sim {

struct Interval {
  Nanos from = 0;
  Nanos until = Outage::kForever;
};

// Does the patch hold for part of the run only?
[[nodiscard]] bool is_timed(const pb::Patch& patch);
// kBadInput when times contradict each other, or when the patch changes what cannot change in the middle of a run.
[[nodiscard]] Result<void> check_interval(const pb::Patch& patch);
// When it holds, in order; one that is not timed holds always.
[[nodiscard]] std::vector<Interval> intervals_of(const pb::Patch& patch);

// `links` and `capacities` as built from the scenario's document. kBadInput when a patch would change which links
// there are.
[[nodiscard]] Result<Schedule> schedule_of(const Scenario& scenario, const platforms::Links& links,
                                           const std::vector<BytesPerSec>& capacities);

}  // namespace rehearse::sim
