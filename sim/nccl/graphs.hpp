// SPDX-License-Identifier: Apache-2.0
// The graphs of a communicator: what the search found on each node (sim/nccl/search.hpp), reduced
// over all of them and joined to rings and trees through all nodes (NCCL model §7.4 to §7.7).
#pragma once

#include <vector>

#include "sim/nccl/placement.hpp"
#include "sim/nccl/settings.hpp"
#include "sim/nccl/shape.hpp"

namespace rehearse::sim {

// One channel's way through one group: member indices in order; the first receives from the network,
// the last sends to it (a tree: both ways at the first, and at the second by its pattern). NICs are
// indices into the nets of the group's system; unused on one node.
struct NodePath {
  std::vector<uint32_t> members;
  uint32_t nic = 0;      // by which the first member receives
  uint32_t nic_out = 0;  // by which the last member sends
};

struct Graphs {
  CommShape shape;
  // [channel][group]; channels beyond repeat them.
  std::vector<std::vector<NodePath>> rings;
  std::vector<std::vector<NodePath>> trees;
  GraphPattern tree_pattern = GraphPattern::kBalancedTree;
  // NVLS: [group] the heads, and the NIC of each.
  std::vector<std::vector<uint32_t>> heads;
  std::vector<std::vector<uint32_t>> head_nics;
  // CollNet: [channel][group] chains from the head on; [group] the heads, each a path of one member.
  std::vector<std::vector<NodePath>> collnet_chains;
  std::vector<std::vector<NodePath>> collnet_heads;
  bool recorded = false;     // some node's graphs come from a dump
  bool searched_as = false;  // the search of another NCCL version was used

  // Which of the two binary trees a channel belongs to (§7.4: copies of the first half).
  [[nodiscard]] int tree_of(int channel) const;
  // Where a tree's edges attach: to the parent, to the first and to the second child.
  [[nodiscard]] uint32_t to_parent(const NodePath& path) const;
  [[nodiscard]] uint32_t to_child(const NodePath& path, int child) const;
};

// `decider` is the member whose variables count where ranks have different ones.
[[nodiscard]] Result<Graphs> build_graphs(const ModelContext& context, const Placement& placement,
                                          uint32_t decider);

// Parent of every member in the tree of a channel, as indices into Placement::members; -1: the root. Chains
// inside nodes, the double binary tree between them.
[[nodiscard]] std::vector<int> tree_parents(const Placement& placement, const Graphs& graphs,
                                            int channel);

// Parent and children of `node` in NCCL's double binary tree over n nodes (§7.6); -1: none.
struct TreeNode {
  int up = -1;
  int down[2] = {-1, -1};
};
[[nodiscard]] TreeNode binary_tree(int node, int n, int which);

}  // namespace rehearse::sim
