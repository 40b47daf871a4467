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
  void hop(uint32_t from, uint32_t to, uint32_t nic_from, uint32_t nic_to, uint64_t flow,
           std::vector<platforms::LinkId>& route) const;
  void tree_edge(int c, size_t node_a, size_t node_b, std::vector<platforms::LinkId>& route) const;
  [[nodiscard]] std::vector<uint32_t> near_nics(uint32_t member) const;
  [[nodiscard]] uint32_t nic_of(uint32_t member, uint32_t channel) const;
  [[nodiscard]] size_t group_of(uint32_t member) const;

  const ModelContext& context_;
  const Placement& placement_;
  const Graphs& graphs_;
};

}  // namespace rehearse::sim
