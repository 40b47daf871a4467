// SPDX-License-Identifier: Apache-2.0
// The graphs of a communicator: how many channels, at which speed class, in which order of GPUs. A
// closed form of NCCL's search (NCCL model §7.3 and §7.4) for nodes that are alike: speeds are
// tried from high to low, a speed gives as many channels as NVLink, PCIe and NICs carry, the
// largest total wins, channels are then duplicated as NCCL does. The step-by-step search over odd
// topologies is not reproduced; a graph dump or log is the better source for those.
#pragma once

#include <vector>

#include "sim/nccl/placement.hpp"
#include "sim/nccl/settings.hpp"
#include "sim/nccl/shape.hpp"

namespace rehearse::sim {

// One channel's way through one node: member indices in order; the first receives from the network,
// the last sends to it, through `nic` (an index into the node's NICs; unused on one node).
struct NodePath {
  std::vector<uint32_t> members;
  uint32_t nic = 0;
};

struct Graphs {
  CommShape shape;
  // rings[channel][group]; channels beyond repeat them.
  std::vector<std::vector<NodePath>> rings;
};

[[nodiscard]] Result<Graphs> build_graphs(const ModelContext& context, const Placement& placement);

// Parent and children of `node` in NCCL's double binary tree over n nodes (§7.6); -1: none.
struct TreeNode {
  int up = -1;
  int down[2] = {-1, -1};
};
[[nodiscard]] TreeNode binary_tree(int node, int n, int which);

}  // namespace rehearse::sim
