// SPDX-License-Identifier: Apache-2.0
// How long it takes until a pipeline of chunks is full. What it predicts: the part of a tree's, chain's or node tree's
// time that its fluid flow leaves out. Over edges that take t_e per chunk, k chunks take
//
//   sum of t_e + (k - 1) max t_e
//
// on the longest way; the flow is k max t_e, so the fill is the sum without its largest term. t_e is the chunk at the
// edge's share of its links while all channels run, or at the channel's own limit. Rings wait for themselves and are
// counted by loops (timing.hpp). Blind spots: in-network reduction (CollNet) and in-switch reduction inside a node are
// taken to forward without a pause.
#pragma once

#include "sim/nccl/graphs.hpp"
#include "sim/nccl/placement.hpp"
#include "sim/nccl/timing.hpp"

namespace rehearse::sim {

struct Pipeline {
  Function function = Function::kAllReduce;
  Algorithm algorithm = Algorithm::kRing;
  uint32_t root = 0;
  const FlowLoad& flow;  // whose weights are those of all channels
  double chunk = 0;      // of one unit of the flow, on the wire
  Queues queues{};       // as the flow has them
};

// Nothing (count 0) for what has no pipeline of this kind.
[[nodiscard]] LatencyPart pipeline_fill(const ModelContext& context, const Placement& placement,
                                        const Graphs& graphs, const Pipeline& pipeline);

}  // namespace rehearse::sim
