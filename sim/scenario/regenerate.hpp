// SPDX-License-Identifier: Apache-2.0
// `regenerate`: the job of a generated trace with other settings. Settings that a trace cannot be edited for (batch,
// buckets, sharding, layout) are those of its generator, so it makes the trace anew.
#pragma once

#include "sim/scenario/scenario.hpp"

namespace rehearse::sim {

// Makes scenario.trace what the regenerate patches among its transforms ask for; without one, the trace as loaded.
// kBadInput when the trace was recorded, or when the number of ranks would change.
[[nodiscard]] Result<void> regenerate(Scenario& scenario);
// The same with one more of them.
[[nodiscard]] Result<void> regenerate(Scenario& scenario, const pb::Patch& patch);

}  // namespace rehearse::sim
