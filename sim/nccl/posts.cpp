// SPDX-License-Identifier: Apache-2.0
#include "sim/nccl/posts.hpp"

#include <algorithm>
#include <unordered_map>
#include <vector>

namespace rehearse::sim {
namespace {

using Messages = std::unordered_map<uint32_t, double>;  // by member

double most(const Messages& messages) {
  double out = 0;
  for (const auto& [member, count] : messages) out = std::max(out, count);
  return out;
}

// A ring enters a node at the first member and leaves it at the last.
double ring_messages(const Graphs& graphs, int channels) {
  Messages messages;
  for (int c = 0; c < channels; ++c) {
    for (const NodePath& path : graphs.rings[static_cast<size_t>(c) % graphs.rings.size()]) {
      if (path.members.empty()) continue;
      messages[path.members.front()] += 1;
      messages[path.members.back()] += 1;
    }
  }
  return most(messages);
}

// Every edge of a tree carries a message up and one down, and each is posted at both ends.
double tree_messages(const Graphs& graphs, int channels) {
  Messages messages;
  for (int c = 0; c < channels; ++c) {
    const auto& paths = graphs.trees[static_cast<size_t>(c) % graphs.trees.size()];
    const int nodes = static_cast<int>(paths.size());
    for (int n = 0; n < nodes; ++n) {
      const TreeNode tree = binary_tree(n, nodes, graphs.tree_of(c));
      const NodePath& path = paths[static_cast<size_t>(n)];
      if (tree.up >= 0) messages[graphs.to_parent(path)] += 2;
      for (int child = 0; child < 2; ++child) {
        if (tree.down[child] >= 0) messages[graphs.to_child(path, child)] += 2;
      }
    }
  }
  return most(messages);
}

// Every head of a node has its slice of every channel, in messages of its own.
double head_messages(const Graphs& graphs, int channels) {
  const int nodes = graphs.shape.n_nodes;
  std::vector<double> messages(static_cast<size_t>(nodes), 0);
  for (int c = 0; c < channels; ++c) {
    for (int n = 0; n < nodes; ++n) {
      const TreeNode tree = binary_tree(n, nodes, c % 2);
      for (const int peer : {tree.up, tree.down[0], tree.down[1]}) {
        if (peer >= 0) messages[static_cast<size_t>(n)] += 2;
      }
    }
  }
  return *std::max_element(messages.begin(), messages.end()) / std::max(1, graphs.shape.nvls_heads);
}

}  // namespace

double messages_of_busiest(const Graphs& graphs, Algorithm algorithm, int channels) {
  if (graphs.shape.n_nodes < 2) return 0;
  switch (algorithm) {
    case Algorithm::kRing:
      return graphs.rings.empty() ? 0 : ring_messages(graphs, channels);
    case Algorithm::kTree:
      return graphs.trees.empty() ? 0 : tree_messages(graphs, channels);
    case Algorithm::kNvlsTree:
      return head_messages(graphs, channels);
    default:
      return 0;
  }
}

BytesPerSec posting_limit(const Graphs& graphs, const Choice& choice, int channels,
                          int64_t message_bytes, double messages) {
  const double at_once = messages_of_busiest(graphs, choice.algorithm, channels);
  if (at_once <= 0 || messages <= 1) return 0;
  const double step_us =
      network_post_us(graphs.shape) * (choice.protocol == Protocol::kSimple ? 3 : 1);
  const double held_up = (messages - 1) / messages;
  return static_cast<double>(message_bytes) / (at_once * step_us / 2 * 1e-6 * held_up);
}

}  // namespace rehearse::sim
