// SPDX-License-Identifier: Apache-2.0
// Collectives of ranks that recorded different parts of a run (sampled traces, windows that do not
// start together): their order does not match them, the times at which they end do. The offset of a
// rank's clock against the rank with most calls is the one under which most calls of the same type end
// together.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "traces/import/part.hpp"

namespace rehearse::traces {

struct TimeMatch {
  uint64_t matched = 0;    // calls that another rank made too
  uint64_t unmatched = 0;  // calls that nobody else recorded
};

// Assigns Call::sequence on `communicator` in order of time. Nothing, and nothing changed, when no
// offset brings at least `share` of the calls of each rank together.
[[nodiscard]] std::optional<TimeMatch> match_by_time(std::span<RankPart> ranks,
                                                     uint32_t communicator, double share);

}  // namespace rehearse::traces
