// SPDX-License-Identifier: Apache-2.0
// Start times for operations that only have durations, lanes and dependencies: each lane runs one at a
// time, whichever is ready first (ties: recorded first), as early as everything it depends on allows.
// Sorted by start, lane and index, operations stand behind all that they depend on, also where these take
// no time.
// Pure and deterministic; n log n.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "traces/model/trace.hpp"

namespace rehearse::traces::chakra {

struct Schedule {
  std::vector<Nanos> start;
  // Operations that a cycle of dependencies would have kept from ever starting; one each was let go.
  uint64_t cycles = 0;
  uint32_t first_in_cycle = 0;
};

// `dependencies` ascending; every index is below lane.size() == duration.size(). No start is above
// `latest`.
[[nodiscard]] Schedule earliest_starts(std::span<const uint16_t> lane,
                                       std::span<const Nanos> duration,
                                       std::span<const Dependency> dependencies, Nanos latest);

}  // namespace rehearse::traces::chakra
