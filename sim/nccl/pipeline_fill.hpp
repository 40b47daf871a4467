// SPDX-License-Identifier: Apache-2.0
// How long it takes until a pipeline of parts is full. What it predicts: the part of a tree's, chain's or node tree's
// time that its fluid flow leaves out. With f_e the time of the first part on an edge of the longest way and t the
// time of a later one on the slowest edge, k parts take
//
//   sum of f_e + (k - 1) t
//
// The flow is k t, so the fill is the sum less t. A part goes at its share of the edge's links while all channels run,
// the first one beside those that go the same way only (up or down a tree), or at the channel's own limit. Rings wait
// for themselves and are counted by loops (timing.hpp). What is passed on at a time: of the SIMPLE protocol an eighth of
// a chunk, 64 KiB of NCCL's 512 (a prior with tables in view: broadcast and reduce of nccl-tests over eight A100 or H800
// take 25 to 60 us longer than their bytes, launch apart, where whole chunks would cost 300); LL and LL128 have a flag in
// every line and forward line by line. Blind spots: in-network reduction (CollNet) and in-switch
// reduction inside a node are taken to forward without a pause.
#pragma once

#include "sim/nccl/graphs.hpp"
#include "sim/nccl/placement.hpp"
#include "sim/nccl/timing.hpp"

namespace rehearse::sim {

// Bytes of one channel, on the wire, that are passed on at a time; 0: as they come.
[[nodiscard]] double passed_on(Protocol protocol, double chunk_bytes);

struct Pipeline {
  Function function = Function::kAllReduce;
  Algorithm algorithm = Algorithm::kRing;
  uint32_t root = 0;
  const FlowLoad& flow;  // whose weights are those of all channels
  int channels = 1;
  double part = 0;  // of one unit of the flow, on the wire, passed on at a time
  Queues queues{};  // as the flow has them
};

// Nothing (count 0) for what has no pipeline of this kind.
[[nodiscard]] LatencyPart pipeline_fill(const ModelContext& context, const Placement& placement,
                                        const Graphs& graphs, const Pipeline& pipeline);

}  // namespace rehearse::sim
