// SPDX-License-Identifier: Apache-2.0
// A timeline in as many entries as a picture can hold. Operations of a lane that together take no longer than the
// resolution become one entry that knows how many they were and how long they ran; the resolution is the smallest at
// which the entries fit. Some ranks may keep more detail than others; of the others only GPU lanes are kept where
// there is too much. Pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/proto/outcome.pb.h"

namespace rehearse::sim {

struct OverviewOptions {
  size_t entries = 120'000;         // at most about so many
  std::vector<uint32_t> in_detail;  // ranks that share half of them
};

[[nodiscard]] pb::Timeline overview(const pb::Timeline& whole, const OverviewOptions& options);

// The ranks that somebody who reads the outcome wants to see first, ascending: culprits, the first failure, those on
// the critical path, the extremes of waiting, rank 0.
[[nodiscard]] std::vector<uint32_t> ranks_of_interest(const pb::Outcome& outcome, size_t most);

}  // namespace rehearse::sim
