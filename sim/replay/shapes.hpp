// SPDX-License-Identifier: Apache-2.0
// The distinct calls of a program: each has its traffic declared to the fabric once, before the
// run.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "sim/replay/link_users.hpp"
#include "sim/replay/replay.hpp"

namespace rehearse::sim {

// One message between two members.
struct DeclaredHop {
  uint32_t from = 0, to = 0;
  RouteId route = 0;
  double bytes = 0;
};

// A call's messages as a graph, for fidelity step.
struct DeclaredPlan {
  std::vector<RouteId> route;  // by message
  std::vector<double> bytes;
  std::vector<uint32_t> waits;  // how many messages must have ended before
  // Messages that wait for message m: next[next_begin[m] .. next_begin[m + 1]).
  std::vector<uint32_t> next_begin, next;
  uint32_t per_hop = 0;  // chains: messages of each hop, hop by hop
};

struct DeclaredShape {
  Nanos latency = 0;
  Nanos alone = -1;  // how long its flows take where nothing can hold them up (private_calls.hpp)
  std::vector<std::pair<RouteId, double>> flows;
  std::vector<DeclaredHop> hops;  // rooted calls and pairs
  DeclaredPlan plan;              // empty: the flows stand for it
  bool planned_apart = false;     // members' settings make them plan it differently
  Bytes credit = 0;
  Bytes bytes = 0;              // of one hop's payload, to compare with the credit
  double share_of_kernels = 0;  // what it takes of kernels beside it (contention.hpp)
};

// Since when the first of the calls in flight over a link has been moving data; -1: there is none.
[[nodiscard]] Nanos crossing_since(const Replayed& replayed, std::span<const DeclaredShape> shapes,
                                   const Fabric& fabric, LinkId link);

// Fills `shape_of` and `shapes` of `out`, and the links that calls use into `users`; `out.meetings` must be arranged.
[[nodiscard]] Result<std::vector<DeclaredShape>> declare_shapes(const traces::Program& program,
                                                                const ReplayOptions& options,
                                                                Fabric& fabric, LinkUsers& users,
                                                                Replayed& out);

}  // namespace rehearse::sim
