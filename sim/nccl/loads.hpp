// SPDX-License-Identifier: Apache-2.0
// Which links an algorithm's channels cross, and how often: the weights of a fluid flow. The unit
// of a flow is one channel (ring, tree) or one pair (all-to-all), so that flows that share a link
// share it by connections. Where connections have several queue pairs or ports the unit is a part of
// a channel (Queues).
#pragma once

#include <algorithm>
#include <map>
#include <tuple>

#include "sim/nccl/call.hpp"
#include "sim/nccl/graphs.hpp"
#include "sim/nccl/placement.hpp"

namespace rehearse::sim {

// What a placement's adapters and settings ask for, for messages of that number and size.
[[nodiscard]] Queues queues_of(const Placement& placement, int64_t messages, int64_t message_bytes);

// A link once, with the sum of its weights.
[[nodiscard]] std::vector<LinkWeight> merged(std::vector<LinkWeight>& crossings);

// Whole numbers in proportion to `crossings`, the largest at most `most`; `unit` is how many
// crossings one of them stands for.
[[nodiscard]] std::vector<LinkWeight> scaled(const std::map<platforms::LinkId, double>& crossings,
                                             uint32_t most, double& unit);

// Distances 1, 2, 4, ... below `ranks` of PAT, and how many blocks each rank passes on at one.
[[nodiscard]] int pat_dimensions(uint32_t ranks);
[[nodiscard]] uint32_t pat_blocks(uint32_t ranks, int dimension);

class Loads {
 public:
  Loads(const ModelContext& context, const Placement& placement, const Graphs& graphs,
        const Queues& queues)
      : context_(context), placement_(placement), graphs_(graphs), queues_(queues) {}

  // `channels` rings over all members.
  [[nodiscard]] std::vector<LinkWeight> rings(int channels) const;
  // `channels` trees: each edge once up and once down; half of the channels use the second tree.
  [[nodiscard]] std::vector<LinkWeight> trees(int channels) const;
  // NVLink of every GPU, `out` times out and `in` times in.
  [[nodiscard]] std::vector<LinkWeight> nvls(uint32_t out, uint32_t in) const;
  // The edges between nodes of `channels` trees, up and down. With in-switch reduction the unit is the slice that one head
  // has of one channel (head_slices()), else a channel.
  [[nodiscard]] std::vector<LinkWeight> node_trees(int channels) const;
  [[nodiscard]] int head_slices() const { return std::max(1, graphs_.shape.nvls_heads); }
  // From one member to another.
  [[nodiscard]] std::vector<LinkWeight> pair(uint32_t from, uint32_t to, uint32_t weight) const;
  // Every member to every other one. Large weights are scaled to at most kMostWeight; `unit` is how
  // many pairs one unit of weight then stands for.
  [[nodiscard]] std::vector<LinkWeight> all_pairs(double& unit) const;

  static constexpr uint32_t kMostWeight = 256;

  // CollNet, towards the switches that reduce or back from them: a chain through each node and its
  // head's way to the network, `channels` times; or every GPU with every head of its node, the unit
  // being the slice of one head. A link between switches carries what they have reduced, once.
  enum class Way : uint8_t { kUp, kDown };
  [[nodiscard]] std::vector<LinkWeight> collnet_chains(int channels, Way way) const;
  [[nodiscard]] std::vector<LinkWeight> collnet_heads(Way way) const;
  // The ways of NVLS heads to switches of the network that reduce, the unit being one head's slice.
  [[nodiscard]] std::vector<LinkWeight> nvls_heads(Way way) const;
  // PAT: what every rank passes on to the ranks at distances 1, 2, 4, ... The unit of weight is one
  // rank's block on one channel, times `unit` where weights would be larger than kMostWeight.
  [[nodiscard]] std::vector<LinkWeight> pat(int channels, Function function, double& unit) const;

  // The same hop by hop, for messages. Links carry weight `units` per crossing.
  struct Edge {
    uint32_t from = 0, to = 0;  // members
    std::vector<LinkWeight> links;
  };
  // One channel's ring from its first member on, closing hop included.
  [[nodiscard]] std::vector<Edge> ring_edges(int channel) const;
  // One channel's tree, each edge up and down; `nodes_only`: those between nodes.
  [[nodiscard]] std::vector<Edge> tree_edges(int channel, bool nodes_only) const;
  // One channel's edges of PAT at distance 2^dimension.
  [[nodiscard]] std::vector<Edge> pat_edges(int channel, int dimension, Function function) const;
  // How a message of an all-to-all leaves: by which network device of the sender's group (UINT32_MAX: none, it stays
  // inside), and through which other member's GPU (PXN, or NVLink through a neighbour; UINT32_MAX: none).
  struct Leaves {
    uint32_t net = UINT32_MAX;
    uint32_t through = UINT32_MAX;
    bool operator<(const Leaves& other) const {
      return std::tie(net, through) < std::tie(other.net, other.through);
    }
  };
  [[nodiscard]] Leaves leaves(uint32_t from, uint32_t to) const;
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
  // Between nodes: every head of in-switch reduction with those of its place, for its slice of the channel.
  [[nodiscard]] std::vector<Bond> head_bonds(int channel) const;
  using Crossings = std::vector<LinkWeight>;  // as they come, a link once per crossing
  // Inside a group.
  void near_hop(const Member& a, const Member& b, std::vector<platforms::LinkId>& route) const;
  void hop(End from, End to, uint64_t channel, Crossings& out) const;
  // Unit `unit` of a connection between groups.
  void far_hop(End from, End to, uint64_t flow, uint32_t unit,
               std::vector<platforms::LinkId>& route) const;
  void send(End from, uint32_t nic, std::vector<platforms::LinkId>& route) const;
  void receive(End to, uint32_t nic, std::vector<platforms::LinkId>& route) const;
  // The heads' ways to the switches and the links between switches that all of them need.
  void to_switches(const std::vector<End>& heads, uint64_t flow, Way way, Crossings& out) const;
  // The network devices of send and receive (§8, NET).
  [[nodiscard]] uint32_t net_for_send(uint32_t member, uint32_t peer, uint32_t channel) const;
  [[nodiscard]] uint32_t net_for_receive(uint32_t member, uint32_t channel) const;
  [[nodiscard]] const LocalGroup& group_of(uint32_t member) const {
    return placement_.groups[placement_.members[member].group];
  }

  const ModelContext& context_;
  const Placement& placement_;
  const Graphs& graphs_;
  const Queues queues_;
};

}  // namespace rehearse::sim
