// SPDX-License-Identifier: Apache-2.0
#include "sim/nccl/graphs.hpp"

#include <algorithm>
#include <set>

#include "sim/nccl/constants.hpp"
#include "sim/nccl/environment.hpp"

namespace rehearse::sim {
namespace {

// Of all nodes: the fewest channels and least bandwidth, the farthest distance.
void reduce(GraphInfo& into, const SearchedGraph& graph, bool first) {
  GraphInfo info;
  info.n_channels = graph.n_channels();
  info.bw_intra = graph.intra;
  info.bw_inter = graph.inter;
  info.type_intra = graph.type_intra;
  info.type_inter = graph.type_inter;
  info.same_channels = graph.same_channels;
  if (first) {
    into = info;
    return;
  }
  into.n_channels = std::min(into.n_channels, info.n_channels);
  into.bw_intra = std::min(into.bw_intra, info.bw_intra);
  into.bw_inter = std::min(into.bw_inter, info.bw_inter);
  into.type_intra = std::max(into.type_intra, info.type_intra);
  into.type_inter = std::max(into.type_inter, info.type_inter);
  into.same_channels = into.same_channels && info.same_channels;
}

class Building {
 public:
  Building(const ModelContext& context, const Placement& placement, uint32_t decider)
      : context_(context), placement_(placement), env_(placement.members[decider].env) {}

  Result<Graphs> run() {
    fill_machine();
    reduce_graphs();
    fill_nvls();
    fill_collnet();
    count_channels();
    join_rings();
    join_trees();
    return std::move(out_);
  }

 private:
  [[nodiscard]] const pb::Node& node(size_t group) const {
    return context_.platform.nodes(static_cast<int>(placement_.groups[group].node));
  }

  void fill_machine() {
    CommShape& shape = out_.shape;
    shape.n_nodes = static_cast<int>(placement_.groups.size());
    shape.n_ranks = static_cast<int>(placement_.members.size());
    shape.cc_min = 1000;
    shape.cc_max = 0;
    shape.ranks_per_node = 1;
    shape.nvswitch = true;
    bool first = true;
    for (const LocalGroup& group : placement_.groups) {
      const NodeSystem& system = group.system();
      for (const DeviceId gpu : system.gpus) {
        shape.cc_min = std::min(shape.cc_min, system.devices[gpu].compute_capability);
        shape.cc_max = std::max(shape.cc_max, system.devices[gpu].compute_capability);
      }
      shape.ranks_per_node = std::max(shape.ranks_per_node, static_cast<int>(group.members.size()));
      shape.nvswitch &= system.nvswitch != kNoDevice;
      const SystemDevice& cpu = system.devices[system.cpus.front()];
      if (!first && cpu.vendor != shape.cpu_vendor) shape.cpu_vendor = CpuVendor::kMixed;
      if (first) {
        shape.cpu_arch = cpu.arch;
        shape.cpu_vendor = cpu.vendor;
      }
      first = false;
      out_.recorded |= group.graphs->recorded;
    }
    out_.searched_as = placement_.groups.front().settings.version < NcclVersion{2, 19, 0};
  }

  void reduce_graphs() {
    CommShape& shape = out_.shape;
    GraphPattern pattern = GraphPattern::kBalancedTree;
    for (size_t g = 0; g < placement_.groups.size(); ++g) {
      const NodeGraphs& found = *placement_.groups[g].graphs;
      reduce(shape.ring, found.ring, g == 0);
      reduce(shape.tree, found.tree, g == 0);
      reduce(shape.nvls, found.nvls, g == 0);
      reduce(shape.collnet_chain, found.collnet_chain, g == 0);
      reduce(shape.collnet_direct, found.collnet_direct, g == 0);
      pattern = std::max(pattern, found.tree.pattern);
      crosses_ |= found.ring.cross_nic == 2;
    }
    shape.tree_pattern_max = out_.tree_pattern = pattern;
    base_ = std::max(1, std::min(shape.ring.n_channels, shape.tree.n_channels));
    shape.ring.n_channels = shape.tree.n_channels = base_;
  }

  void fill_nvls() {
    CommShape& shape = out_.shape;
    for (size_t g = 0; g < placement_.groups.size(); ++g) {
      const LocalGroup& group = placement_.groups[g];
      std::vector<uint32_t> heads, nics;
      for (const SearchedChannel& channel : group.graphs->nvls.channels) {
        const uint32_t head = group.by_gpu[channel.gpus.front()];
        if (std::find(heads.begin(), heads.end(), head) != heads.end()) continue;
        heads.push_back(head);
        nics.push_back(channel.net_in);
      }
      const int count = static_cast<int>(heads.size());
      shape.nvls_heads = g == 0 ? count : std::min(shape.nvls_heads, count);
      out_.heads.push_back(std::move(heads));
      out_.head_nics.push_back(std::move(nics));
    }
    shape.nvls_support = shape.nvls_heads > 0 && shape.nvls.n_channels > 0 && shape.cc_min >= 90;
    if (!shape.nvls_support) {
      shape.nvls = {};
      shape.nvls_heads = 0;
      return;
    }
    int channels = shape.cc_min >= 100 ? (shape.n_nodes > 1 ? 32 : 24) : 16;
    channels = whole_number(env_, "NCCL_NVLS_NCHANNELS", channels);
    shape.nvls_channels = std::clamp(channels, std::min(least(), most()), most());
  }

  // Reduction in the network: every rank wants it, the fabric has it, there are enough nodes.
  void fill_collnet() {
    CommShape& shape = out_.shape;
    bool wanted = shape.n_nodes > 1 && shape.collnet_chain.n_channels > 0;
    for (const LocalGroup& group : placement_.groups) {
      wanted &= group.settings.collnet && shape.n_nodes >= group.settings.collnet_nodes;
    }
    if (!wanted) {
      shape.collnet_chain = shape.collnet_direct = {};
      return;
    }
    shape.collnet = true;
    shape.collnet_depth = shape.ranks_per_node > 1 ? 2 : 1;
    for (size_t g = 0; g < placement_.groups.size(); ++g) {
      const LocalGroup& group = placement_.groups[g];
      const SearchedGraph& direct = group.graphs->collnet_direct;
      const SearchedGraph& chain = group.graphs->collnet_chain;
      std::set<uint32_t> seen;
      std::vector<NodePath> heads;
      for (const SearchedChannel& channel :
           direct.channels.empty() ? chain.channels : direct.channels) {
        if (!seen.insert(channel.gpus.front()).second) continue;
        heads.push_back({{group.by_gpu[channel.gpus.front()]}, channel.net_in, channel.net_in});
      }
      const int count = static_cast<int>(heads.size());
      shape.collnet_heads = g == 0 ? count : std::min(shape.collnet_heads, count);
      out_.collnet_heads.push_back(std::move(heads));
    }
    for (int c = 0; c < shape.collnet_chain.n_channels; ++c) {
      std::vector<NodePath> chains;
      for (const LocalGroup& group : placement_.groups) {
        const auto& channels = group.graphs->collnet_chain.channels;
        chains.push_back(path_of(group, channels[static_cast<size_t>(c)]));
      }
      out_.collnet_chains.push_back(std::move(chains));
    }
  }

  [[nodiscard]] int most() const {
    const int most = std::min(channels("NCCL_MAX_NCHANNELS", "NCCL_MAX_NRINGS", kMaxChannels),
                              whole_number(env_, "NCCL_MAX_CTAS", kMaxChannels));
    return std::clamp(most, 1, kMaxChannels);
  }
  [[nodiscard]] int least() const {
    const int least = std::max(channels("NCCL_MIN_NCHANNELS", "NCCL_MIN_NRINGS", 1),
                               whole_number(env_, "NCCL_MIN_CTAS", 1));
    return std::clamp(least, 1, kMaxChannels);
  }
  // The older name counts where the newer one is not set.
  [[nodiscard]] int channels(const char* name, const char* older, int otherwise) const {
    return whole_number(env_, name, whole_number(env_, older, otherwise));
  }

  // §7.4.
  void count_channels() {
    CommShape& shape = out_.shape;
    int n = std::min(kMaxChannels, base_ * 2);
    if (shape.collnet && shape.collnet_chain.bw_intra > shape.collnet_chain.bw_inter &&
        shape.n_ranks > shape.n_nodes) {
      n = std::min(kMaxChannels, n * 3 / 2);
    }
    if (shape.cc_min >= 90 && shape.n_nodes > 1 && shape.ring.bw_intra > 45 && n < 16) n *= 2;
    shape.n_channels = std::max(std::min(n, most()), std::min(least(), kMaxChannels));
  }

  [[nodiscard]] NodePath path_of(const LocalGroup& group, const SearchedChannel& channel) const {
    NodePath path;
    for (const uint32_t gpu : channel.gpus) path.members.push_back(group.by_gpu[gpu]);
    path.nic = channel.net_in;
    // A GPU alone sends by the NIC it receives by.
    path.nic_out = channel.gpus.size() > 1 ? channel.net_out : channel.net_in;
    return path;
  }

  void join_rings() {
    for (int c = 0; c < base_; ++c) {
      std::vector<NodePath> ring;
      for (size_t g = 0; g < placement_.groups.size(); ++g) {
        const LocalGroup& group = placement_.groups[g];
        // Rings that change NICs inside nodes go in pairs: odd nodes take the other of the pair.
        const int from = crosses_ && base_ % 2 == 0 && g % 2 == 1 ? c ^ 1 : c;
        ring.push_back(path_of(group, group.graphs->ring.channels[static_cast<size_t>(from)]));
      }
      out_.rings.push_back(std::move(ring));
    }
  }

  void join_trees() {
    for (int c = 0; c < base_; ++c) {
      std::vector<NodePath> tree;
      for (const LocalGroup& group : placement_.groups) {
        tree.push_back(path_of(group, group.graphs->tree.channels[static_cast<size_t>(c)]));
      }
      out_.trees.push_back(std::move(tree));
    }
  }

  const ModelContext& context_;
  const Placement& placement_;
  const std::map<std::string, std::string>& env_;
  int base_ = 1;
  bool crosses_ = false;
  Graphs out_;
};

}  // namespace

int Graphs::tree_of(int channel) const {
  const int base = static_cast<int>(trees.size());
  return channel % (2 * base) / base;
}

uint32_t Graphs::to_parent(const NodePath& path) const { return path.members.front(); }

uint32_t Graphs::to_child(const NodePath& path, int child) const {
  const bool second =
      child == 0 ? tree_pattern != GraphPattern::kTree : tree_pattern == GraphPattern::kSplitTree;
  return path.members[second && path.members.size() > 1 ? 1 : 0];
}

Result<Graphs> build_graphs(const ModelContext& context, const Placement& placement,
                            uint32_t decider) {
  return Building(context, placement, decider).run();
}

std::vector<int> tree_parents(const Placement& placement, const Graphs& graphs, int channel) {
  const auto& paths = graphs.trees[static_cast<size_t>(channel) % graphs.trees.size()];
  const int nodes = static_cast<int>(placement.groups.size());
  std::vector<int> parent(placement.members.size(), -1);
  for (int n = 0; n < nodes; ++n) {
    const NodePath& path = paths[static_cast<size_t>(n)];
    for (size_t i = 1; i < path.members.size(); ++i) {
      parent[path.members[i]] = static_cast<int>(path.members[i - 1]);
    }
    const TreeNode tree = binary_tree(n, nodes, graphs.tree_of(channel));
    for (int child = 0; child < 2; ++child) {
      if (tree.down[child] < 0) continue;
      const NodePath& below = paths[static_cast<size_t>(tree.down[child])];
      parent[graphs.to_parent(below)] = static_cast<int>(graphs.to_child(path, child));
    }
  }
  return parent;
}

TreeNode binary_tree(int node, int n, int which) {
  // The second tree is the first over other names: mirrored for an even number of nodes, shifted
  // for an odd one, so that no node is inner in both.
  const auto rename = [&](int x) {
    if (x < 0 || which == 0) return x;
    return n % 2 == 0 ? n - 1 - x : (x + 1) % n;
  };
  const int x = which == 0 ? node : n % 2 == 0 ? n - 1 - node : (node - 1 + n) % n;
  TreeNode out;
  int bit = 1;
  while (bit < n && (bit & x) == 0) bit <<= 1;
  if (x == 0) {
    out.down[1] = n > 1 ? bit >> 1 : -1;
  } else {
    out.up = (x ^ bit) | (bit << 1);
    if (out.up >= n) out.up = x ^ bit;
    int low = bit >> 1;
    out.down[0] = low == 0 ? -1 : x - low;
    out.down[1] = low == 0 ? -1 : x + low;
    while (out.down[1] >= n) {
      out.down[1] = low == 0 ? -1 : x + low;
      low >>= 1;
    }
  }
  out.up = rename(out.up);
  out.down[0] = rename(out.down[0]);
  out.down[1] = rename(out.down[1]);
  return out;
}

}  // namespace rehearse::sim
