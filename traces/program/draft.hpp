// SPDX-License-Identifier: Apache-2.0
// A program of one rank in the making: operations are laid out lane by lane, edges are still a list.
// Shared by the steps that make a RankProgram (build.cpp, infer_*.cpp, finish.cpp). Plain data; holds
// a reference to the recorded rank, which must outlive it.
#pragma once

#include <vector>

#include "traces/program/program.hpp"

namespace rehearse::traces {

// Of an operation or a gap, 31 years: longer ones are nonsense of a damaged clock and are cut so that sums hold.
constexpr Nanos kLongestTime = 1'000'000'000'000'000'000;

struct Draft {
  explicit Draft(const RankTrace& recorded) : rank(recorded), ops(recorded.ops) {}

  const RankTrace& rank;
  const Operations& ops;
  RankProgram out;
  std::vector<uint32_t> source;  // program op -> recorded op
  std::vector<OpId> position;    // recorded op -> program op, or kNoOp

  struct Edge {
    OpId to = kNoOp, from = kNoOp;
    bool inferred = false;
  };
  std::vector<Edge> edges;

  // Stream operations in the order in which the host launched them.
  struct Issued {
    OpId op = kNoOp;
    OpId launch = kNoOp;
    uint32_t waits =
        0;  // cudaStreamWaitEvent calls without a known event by the same thread just before
  };
  std::vector<Issued> issued;
  uint64_t waits_resolved = 0;    // cudaStreamWaitEvent whose event is recorded
  uint64_t waits_unresolved = 0;  // ... and is not

  [[nodiscard]] Nanos start(OpId op) const { return ops.start[source[op]]; }
  [[nodiscard]] Nanos end(OpId op) const { return start(op) + ops.duration[source[op]]; }
  [[nodiscard]] LaneId lane(OpId op) const { return ops.lane[source[op]]; }
  [[nodiscard]] const Call* call(OpId op) const { return ops.call(source[op]); }
  [[nodiscard]] bool first_of_lane(OpId op) const { return op == out.lane_begin[lane(op)]; }

  void recorded_edge(OpId from, OpId to) {
    if (from != kNoOp && to != kNoOp && from != to) edges.push_back({to, from, false});
  }
  void inferred_edge(OpId from, OpId to) {
    if (from != kNoOp && to != kNoOp && from != to) edges.push_back({to, from, true});
  }
};

}  // namespace rehearse::traces
