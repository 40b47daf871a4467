// SPDX-License-Identifier: Apache-2.0
// What makes one run longer than another: the critical path of each is divided among operations, among ranks and among
// links, and the parts are compared by name. What a part gained or lost is what it contributes to the difference; the
// parts of each division add up to it, to the nanosecond.
#pragma once

#include "base/error.hpp"
#include "base/reporter.hpp"
#include "sim/proto/compare.pb.h"
#include "sim/proto/outcome.pb.h"
#include "sim/scenario/scenario.hpp"

namespace rehearse::sim {

// The outcome with every row of its critical path.
[[nodiscard]] Result<pb::Outcome> simulate_blamed(const Scenario& scenario, Reporter& reporter);
// The same of the recording itself: when operations began and ended as the trace has it. kBadInput when patches changed
// what is replayed.
[[nodiscard]] Result<pb::Outcome> recorded_run(const Scenario& scenario, Reporter& reporter);

// A run that has no critical path (it did not complete) has no parts.
[[nodiscard]] pb::Comparison compare(const pb::Outcome& a, const pb::Outcome& b);

}  // namespace rehearse::sim
