// SPDX-License-Identifier: Apache-2.0
// Which links an algorithm's channels cross, and how often: the weights of a fluid flow. The unit
// of a flow is one channel (ring, tree) or one pair (all-to-all), so that flows that share a link
// share it by connections.
#pragma once

#include "sim/nccl/graphs.hpp"
#include "sim/nccl/placement.hpp"

namespace rehearse::sim {

class Loads {
 public:
  Loads(const ModelContext& context, const Placement& placement, const Graphs& graphs)
      : context_(context), placement_(placement), graphs_(graphs) {}

  // `channels` rings over all members.
  [[nodiscard]] std::vector<LinkWeight> rings(int channels) const;
  // `channels` trees: each edge once up and once down; half of the channels use the second tree.
  [[nodiscard]] std::vector<LinkWeight> trees(int channels) const;
  // NVLink of every GPU, `out` times out and `in` times in.
  [[nodiscard]] std::vector<LinkWeight> nvls(uint32_t out, uint32_t in) const;
  // The edges between nodes of `channels` trees, up and down.
  [[nodiscard]] std::vector<LinkWeight> node_trees(int channels) const;
  // From one member to another.
  [[nodiscard]] std::vector<LinkWeight> pair(uint32_t from, uint32_t to, uint32_t weight) const;
  // Every member to every other one. Large weights are scaled to at most kMostWeight; `unit` is how
  // many pairs one unit of weight then stands for.
  [[nodiscard]] std::vector<LinkWeight> all_pairs(double& unit) const;

  static constexpr uint32_t kMostWeight = 256;

  // The same hop by hop, for messages. Links carry weight 1 per crossing.
  struct Edge {
    uint32_t from = 0, to = 0;  // members
    std::vector<LinkWeight> links;
  };
  // One channel's ring from its first member on, closing hop included.
  [[nodiscard]] std::vector<Edge> ring_edges(int channel) const;
  // One channel's tree, each edge up and down; `nodes_only`: those between nodes.
  [[nodiscard]] std::vector<Edge> tree_edges(int channel, bool nodes_only) const;
  // From one member to another as in an all-to-all.
  [[nodiscard]] std::vector<LinkWeight> exchange(uint32_t from, uint32_t to) const;

 private:
  // One end of a transfer between groups: a member, the network device (of its group's system) and
  // the GPU whose NIC it is when that is another (PXN).
  struct End {
    uint32_t member = 0;
    uint32_t net = 0;
  };
  // Two members that talk in both directions.
  struct Bond {
    End a, b;
  };
  [[nodiscard]] std::vector<Bond> tree_bonds(int channel, bool nodes_only) const;
  // Inside a group.
  void near_hop(const Member& a, const Member& b, std::vector<platforms::LinkId>& route) const;
  void hop(End from, End to, uint64_t flow, std::vector<platforms::LinkId>& route) const;
  void send(End from, std::vector<platforms::LinkId>& route) const;
  void receive(End to, std::vector<platforms::LinkId>& route) const;
  // The network devices of send and receive (§8, NET).
  [[nodiscard]] uint32_t net_for_send(uint32_t member, uint32_t peer, uint32_t channel) const;
  [[nodiscard]] uint32_t net_for_receive(uint32_t member, uint32_t channel) const;
  [[nodiscard]] const LocalGroup& group_of(uint32_t member) const {
    return placement_.groups[placement_.members[member].group];
  }

  const ModelContext& context_;
  const Placement& placement_;
  const Graphs& graphs_;
};

}  // namespace rehearse::sim
