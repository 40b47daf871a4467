// SPDX-License-Identifier: Apache-2.0
// When operations started. A replay keeps ends only; starts follow from them. A kernel's time in the
// replay may differ from its duration in the program (it ran beside a collective, the GPU was slow).
#pragma once

#include "sim/replay/replay.hpp"

namespace rehearse::sim {

// When the lane before `op` had ended: 0 for the first of a lane. Calls of one group end in any
// order.
[[nodiscard]] inline Nanos lane_free(const traces::RankProgram& rank, const std::vector<Nanos>& end,
                                     traces::LaneId lane, OpId op) {
  Nanos free = 0;
  for (OpId before = op; before > rank.lane_begin[lane]; --before) {
    free = free > end[before - 1] ? free : end[before - 1];
    if (rank.call[before - 1] == traces::kNoCall) break;
  }
  return free;
}

// When an operation that ended, no call, began to work: after its lane, its predecessors and its
// gap.
[[nodiscard]] inline Nanos start_of(const traces::RankProgram& rank, const std::vector<Nanos>& end,
                                    traces::LaneId lane, OpId op) {
  Nanos ready = lane_free(rank, end, lane, op);
  for (OpId before : rank.predecessors(op)) ready = ready > end[before] ? ready : end[before];
  return ready + rank.gap[op];
}

}  // namespace rehearse::sim
