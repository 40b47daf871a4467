// SPDX-License-Identifier: Apache-2.0
#include "sim/nccl/posts.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace rehearse::sim {
namespace {

using PostsByMember = std::map<uint32_t, Posts>;

// Counts what is asked for.
class Tally {
 public:
  explicit Tally(const CountedPost& counted) : counted_(counted) {}

  void send(uint32_t member, uint32_t net, double share = 1) {
    if (counted_(member, net, Direction::kSend)) out_[member].sends += share;
  }
  void receive(uint32_t member, uint32_t net, double share = 1) {
    if (counted_(member, net, Direction::kReceive)) out_[member].receives += share;
  }
  // An edge of a tree carries a message up and one down, and each is posted at both ends.
  void edge(uint32_t member, uint32_t net, double share = 1) {
    send(member, net, share);
    receive(member, net, share);
  }
  [[nodiscard]] PostsByMember take() { return std::move(out_); }

 private:
  const CountedPost& counted_;
  PostsByMember out_;
};

// A ring enters a node at the first member and leaves it at the last.
void ring_posts(const Graphs& graphs, int channels, Tally& tally) {
  for (int c = 0; c < channels && !graphs.rings.empty(); ++c) {
    for (const NodePath& path : graphs.rings[static_cast<size_t>(c) % graphs.rings.size()]) {
      if (path.members.empty()) continue;
      tally.receive(path.members.front(), path.nic);
      tally.send(path.members.back(), path.nic_out);
    }
  }
}

void tree_posts(const Graphs& graphs, int channels, Tally& tally) {
  for (int c = 0; c < channels && !graphs.trees.empty(); ++c) {
    const auto& paths = graphs.trees[static_cast<size_t>(c) % graphs.trees.size()];
    const int nodes = static_cast<int>(paths.size());
    for (int n = 0; n < nodes; ++n) {
      const TreeNode tree = binary_tree(n, nodes, graphs.tree_of(c));
      const NodePath& path = paths[static_cast<size_t>(n)];
      const auto add = [&](uint32_t member) {
        tally.edge(member, member == path.members.front() ? path.nic : path.nic_out);
      };
      if (tree.up >= 0) add(graphs.to_parent(path));
      for (int child = 0; child < 2; ++child) {
        if (tree.down[child] >= 0) add(graphs.to_child(path, child));
      }
    }
  }
}

// Every head of a node has its slice of every channel, in messages of its own.
void head_posts(const Graphs& graphs, int channels, Tally& tally) {
  const int nodes = graphs.shape.n_nodes;
  const auto heads = static_cast<size_t>(std::max(1, graphs.shape.nvls_heads));
  for (int n = 0; n < nodes && static_cast<size_t>(n) < graphs.heads.size(); ++n) {
    double edges = 0;
    for (int c = 0; c < channels; ++c) {
      const TreeNode tree = binary_tree(n, nodes, c % 2);
      for (const int peer : {tree.up, tree.down[0], tree.down[1]}) edges += peer >= 0 ? 1 : 0;
    }
    const auto& own = graphs.heads[static_cast<size_t>(n)];
    const auto& nets = graphs.head_nics[static_cast<size_t>(n)];
    for (size_t h = 0; h < std::min({heads, own.size(), nets.size()}); ++h) {
      tally.edge(own[h], nets[h], edges / static_cast<double>(heads));
    }
  }
}

bool every_post(uint32_t, uint32_t, Direction) { return true; }

}  // namespace

std::map<uint32_t, Posts> posts_of(const Graphs& graphs, Algorithm algorithm, int channels,
                                   const CountedPost& counted) {
  Tally tally(counted);
  if (graphs.shape.n_nodes < 2) return {};
  switch (algorithm) {
    case Algorithm::kRing:
      ring_posts(graphs, channels, tally);
      break;
    case Algorithm::kTree:
      tree_posts(graphs, channels, tally);
      break;
    case Algorithm::kNvlsTree:
      head_posts(graphs, channels, tally);
      break;
    default:
      break;
  }
  return tally.take();
}

double connections_of_busiest(const Graphs& graphs, Algorithm algorithm, int channels) {
  double most = 0;
  for (const auto& [member, posts] : posts_of(graphs, algorithm, channels, every_post)) {
    most = std::max({most, posts.sends, posts.receives});
  }
  return most;
}

double messages_of_busiest(const Graphs& graphs, Algorithm algorithm, int channels) {
  double most = 0;
  for (const auto& [member, posts] : posts_of(graphs, algorithm, channels, every_post)) {
    most = std::max(most, posts.sends + posts.receives);
  }
  return most;
}

BytesPerSec posting_limit(const Graphs& graphs, const Choice& choice, const Posting& posting) {
  const double at_once = messages_of_busiest(graphs, choice.algorithm, posting.channels);
  if (at_once <= 0 || posting.messages <= 1) return 0;
  const bool thrice = posting.by == PostedBy::kLibfabric && choice.protocol == Protocol::kSimple;
  const double step_us = network_post_us(graphs.shape) * (thrice ? 3 : 1);
  const double held_up = (posting.messages - 1) / posting.messages;
  return static_cast<double>(posting.message_bytes) / (at_once * step_us / 2 * 1e-6 * held_up);
}

}  // namespace rehearse::sim
