// SPDX-License-Identifier: Apache-2.0
// Makes a rank's program anew from a plan: which of its operations come in which order on each lane, some of them
// more than once, some new. Edges, calls and steps follow. O(operations of the plan + their edges).
#pragma once

#include <optional>
#include <tuple>
#include <vector>

#include "base/error.hpp"
#include "traces/program/program.hpp"

namespace rehearse::sim {

// An operation of the plan: the `copy`th time that `source` is done, or a new one.
struct Planned {
  static constexpr traces::OpId kFresh = UINT32_MAX;
  traces::OpId source = 0;  // kFresh: `copy` is an index into Plan::fresh
  uint32_t copy = 0;
};

// An operation that the program did not have. It waits for its lane and for `after` (of the first copy).
struct FreshOp {
  traces::OpKind kind = traces::OpKind::kHost;
  uint32_t name = 0;
  Nanos gap = 0;
  Nanos duration = 0;
  std::vector<traces::OpId> after;
  std::optional<traces::Transfer> transfer;  // it moves these bytes; `op` is filled in
};

struct Plan {
  std::vector<std::vector<Planned>> lanes;  // by LaneId
  std::vector<FreshOp> fresh;
  // By lane, then step: index into the lane's list where it begins; the last is where all steps have ended.
  std::vector<std::vector<size_t>> steps;
  uint32_t copies = 1;
};

// A copy's predecessors are those of its source in the same copy, else in the first. Sequence numbers and groups
// of later copies go on where those before ended. kLimit when there are more operations than ids.
[[nodiscard]] Result<traces::RankProgram> rebuild(const traces::RankProgram& rank,
                                                  const Plan& plan);

// What counts a call's sequence numbers: collectives per communicator, send and recv per peer too.
[[nodiscard]] std::tuple<uint32_t, int, int32_t> counter_of(const traces::Call& call);

// kLimit when a rank would have more operations than ids.
[[nodiscard]] Result<void> check_operations(traces::RankId rank, size_t operations);

// The host thread that does most of the steps, the one that would load and save; -1: none works in them.
[[nodiscard]] int main_thread(const traces::RankProgram& rank, uint32_t steps);

// The plan that changes nothing.
[[nodiscard]] Plan plan_of(const traces::RankProgram& rank, uint32_t steps);

// Steps that are repeated are written down, every operation by itself: before edges are edited or operations
// inserted.
[[nodiscard]] Result<void> write_out(traces::RankProgram& rank, uint32_t steps);

}  // namespace rehearse::sim
