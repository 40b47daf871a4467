// SPDX-License-Identifier: Apache-2.0
// When operations started. A replay keeps ends only (OpTimes); starts follow from them. A kernel's time in the
// replay may differ from its duration in the program (it ran beside a collective, the GPU was slow).
#pragma once

#include <algorithm>

#include "traces/program/program.hpp"

namespace rehearse::sim {

using traces::OpId;

// When the lane before `op` had ended: its beginning for the first of a lane. Calls of one group end in any
// order.
template <typename Ends>
[[nodiscard]] Nanos lane_free(const traces::RankProgram& rank, const Ends& end, traces::LaneId lane,
                              OpId op) {
  if (op == rank.lane_begin[lane]) return rank.begin;
  Nanos free = end[--op];
  if (rank.call[op] == traces::kNoCall) return free;
  const uint64_t group = rank.calls[rank.call[op]].group;
  while (group != 0 && op > rank.lane_begin[lane] && rank.call[op - 1] != traces::kNoCall &&
         rank.calls[rank.call[op - 1]].group == group) {
    free = std::max(free, end[--op]);
  }
  return free;
}

// When an operation that ended, no call, began to work: after its lane, its predecessors and its
// gap.
template <typename Ends>
[[nodiscard]] Nanos start_of(const traces::RankProgram& rank, const Ends& end, traces::LaneId lane,
                             OpId op) {
  Nanos ready = lane_free(rank, end, lane, op);
  for (OpId before : rank.predecessors(op)) ready = std::max(ready, end[before]);
  return ready + rank.gap[op];
}

}  // namespace rehearse::sim
