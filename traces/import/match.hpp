// SPDX-License-Identifier: Apache-2.0
// Collectives of one rank told by two files, and the same collective on many ranks.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "base/finding.hpp"
#include "traces/import/part.hpp"

namespace rehearse::traces {

// Gives the calls of `part` the sizes of the execution trace of the same rank. They are joined by
// order; when the execution trace covers more, the first stretch of it whose collectives are the
// same.
void join_sizes(const CallSizes& sizes, RankPart& part, Findings& findings);

// A rank that only an execution trace tells of: its collectives in order, one nanosecond apart and
// without length, with a finding that says so. Nothing when there are none.
[[nodiscard]] std::optional<RankPart> rank_of_sizes(const CallSizes& sizes, Strings& strings,
                                                    Findings& findings);

// Assigns Call::sequence so that the same collective has the same number on all ranks: the recorded
// numbers where every call of a communicator has one, else the order of launch. Send and receive
// count per peer and direction. Calls already point into trace.communicators.
void match_calls(std::span<RankPart> ranks, const Trace& trace, Findings& findings);

}  // namespace rehearse::traces
