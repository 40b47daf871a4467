// SPDX-License-Identifier: Apache-2.0
#include "sim/nccl/loads.hpp"

#include <algorithm>
#include <cmath>

namespace rehearse::sim {
namespace {

using platforms::LinkId;

std::vector<LinkWeight> count(std::vector<LinkId>& route) {
  std::sort(route.begin(), route.end());
  std::vector<LinkWeight> out;
  for (LinkId link : route) {
    if (!out.empty() && out.back().link == link) {
      ++out.back().weight;
    } else {
      out.push_back({link, 1});
    }
  }
  return out;
}

}  // namespace

size_t Loads::group_of(uint32_t member) const {
  const uint32_t node = placement_.members[member].gpu.node;
  size_t g = 0;
  while (placement_.groups[g].node != node) ++g;
  return g;
}

std::vector<uint32_t> Loads::near_nics(uint32_t member) const {
  const LocalGroup& group = placement_.groups[group_of(member)];
  if (group.nics.empty()) return {};
  const GpuRef gpu = placement_.members[member].gpu;
  auto best = context_.links.distance(gpu, group.nics.front());
  for (uint32_t nic : group.nics) best = std::min(best, context_.links.distance(gpu, nic));
  std::vector<uint32_t> near;
  for (uint32_t nic : group.nics) {
    if (context_.links.distance(gpu, nic) == best) near.push_back(nic);
  }
  return near;
}

uint32_t Loads::nic_of(uint32_t member, uint32_t channel) const {
  const std::vector<uint32_t> near = near_nics(member);
  // GPUs that share several NICs take different ones.
  return near.empty() ? 0 : near[(placement_.members[member].gpu.gpu + channel) % near.size()];
}

void Loads::hop(uint32_t from, uint32_t to, uint32_t nic_from, uint32_t nic_to, uint64_t flow,
                std::vector<LinkId>& route) const {
  const GpuRef a = placement_.members[from].gpu;
  const GpuRef b = placement_.members[to].gpu;
  const platforms::Links& links = context_.links;
  if (a.node == b.node) {
    if (placement_.intra == IntraTransport::kNvlink && links.nvlink(a, b, route)) return;
    if (placement_.intra == IntraTransport::kHost) return links.host(a, b, route);
    return links.pcie(a, b, route);
  }
  switch (placement_.inter) {
    case InterTransport::kNvlink:
      links.nvlink(a, b, route);
      return;
    case InterTransport::kRdmaDirect:
    case InterTransport::kRdma: {
      const bool direct = placement_.inter == InterTransport::kRdmaDirect;
      links.gpu_to_nic(a, nic_from, direct, route);
      links.network(a.node, nic_from, b.node, nic_to, flow, route);
      links.nic_to_gpu(nic_to, b, direct, route);
      return;
    }
    case InterTransport::kSocket:
    case InterTransport::kNone:
      links.gpu_to_host(a, route);
      links.sockets(a.node, placement_.groups[group_of(from)].interface, b.node,
                    placement_.groups[group_of(to)].interface, route);
      links.host_to_gpu(b, route);
      return;
  }
}

std::vector<LinkWeight> Loads::rings(int channels) const {
  std::vector<LinkId> route;
  for (int c = 0; c < channels; ++c) {
    const auto& ring = graphs_.rings[static_cast<size_t>(c) % graphs_.rings.size()];
    for (size_t g = 0; g < ring.size(); ++g) {
      const NodePath& here = ring[g];
      const NodePath& next = ring[(g + 1) % ring.size()];
      for (size_t i = 1; i < here.members.size(); ++i) {
        hop(here.members[i - 1], here.members[i], 0, 0, static_cast<uint64_t>(c), route);
      }
      if (here.members.back() != next.members.front()) {
        hop(here.members.back(), next.members.front(), here.nic, next.nic, static_cast<uint64_t>(c),
            route);
      }
    }
  }
  return count(route);
}

void Loads::tree_edge(int c, size_t node_a, size_t node_b, std::vector<LinkId>& route) const {
  const auto& paths = graphs_.rings[static_cast<size_t>(c) % graphs_.rings.size()];
  const NodePath& a = paths[node_a];
  const NodePath& b = paths[node_b];
  // The first GPU of the channel's path talks to the network (balanced trees spread over two of
  // them).
  hop(a.members.front(), b.members.front(), a.nic, b.nic, static_cast<uint64_t>(c), route);
  hop(b.members.front(), a.members.front(), b.nic, a.nic, static_cast<uint64_t>(c), route);
}

std::vector<LinkWeight> Loads::node_trees(int channels) const {
  std::vector<LinkId> route;
  const int nodes = static_cast<int>(placement_.groups.size());
  for (int c = 0; c < channels; ++c) {
    for (int n = 0; n < nodes; ++n) {
      const TreeNode tree = binary_tree(n, nodes, c % 2);
      if (tree.up >= 0) tree_edge(c, static_cast<size_t>(n), static_cast<size_t>(tree.up), route);
    }
  }
  return count(route);
}

std::vector<LinkWeight> Loads::trees(int channels) const {
  std::vector<LinkWeight> out = node_trees(channels);
  std::vector<LinkId> route;
  for (int c = 0; c < channels; ++c) {
    for (const NodePath& path : graphs_.rings[static_cast<size_t>(c) % graphs_.rings.size()]) {
      for (size_t i = 1; i < path.members.size(); ++i) {
        hop(path.members[i - 1], path.members[i], 0, 0, 0, route);
        hop(path.members[i], path.members[i - 1], 0, 0, 0, route);
      }
    }
  }
  for (const LinkWeight& use : count(route)) out.push_back(use);
  return out;
}

std::vector<LinkWeight> Loads::nvls(uint32_t out, uint32_t in) const {
  std::vector<LinkWeight> loads;
  for (const LocalGroup& group : placement_.groups) {
    for (size_t i = 0; i < group.members.size(); ++i) {
      // Through the switch to any other GPU: the first link is ours out, the last the other's in.
      std::vector<LinkId> route;
      const uint32_t other = group.members[(i + 1) % group.members.size()];
      hop(group.members[i], other, 0, 0, 0, route);
      if (route.size() < 2) continue;
      loads.push_back({route.front(), out});
      loads.push_back({route.back(), in});
    }
  }
  return loads;
}

std::vector<LinkWeight> Loads::pair(uint32_t from, uint32_t to, uint32_t weight) const {
  std::vector<LinkId> route;
  hop(from, to, nic_of(from, 0), nic_of(to, 0), from, route);
  std::vector<LinkWeight> out = count(route);
  for (LinkWeight& use : out) use.weight *= weight;
  return out;
}

std::vector<LinkWeight> Loads::all_pairs(double& unit) const {
  // Per link, not per pair: what a card or an uplink carries is counted, whoever it is for.
  const auto members = static_cast<uint32_t>(placement_.members.size());
  std::vector<std::vector<uint32_t>> near(members);
  for (uint32_t m = 0; m < members; ++m) near[m] = near_nics(m);
  const auto nic = [&](uint32_t m, uint32_t channel) {
    return near[m].empty() ? 0u
                           : near[m][(placement_.members[m].gpu.gpu + channel) % near[m].size()];
  };
  std::vector<double> crossings(context_.links.size(), 0);
  std::vector<LinkId> route;
  for (uint32_t a = 0; a < members; ++a) {
    for (uint32_t b = 0; b < members; ++b) {
      if (a == b) continue;
      route.clear();
      hop(a, b, nic(a, b), nic(b, a), a, route);
      for (LinkId link : route) crossings[link] += 1;
    }
  }
  std::vector<std::pair<LinkId, double>> load;
  for (LinkId link = 0; link < crossings.size(); ++link) {
    if (crossings[link] > 0) load.emplace_back(link, crossings[link]);
  }
  double most = 1;
  for (const auto& [link, pairs] : load) most = std::max(most, pairs);
  unit = std::max(1.0, most / kMostWeight);
  std::vector<LinkWeight> out;
  for (const auto& [link, pairs] : load) {
    out.push_back({link, static_cast<uint32_t>(std::max(1.0, std::nearbyint(pairs / unit)))});
  }
  return out;
}

std::vector<Loads::Edge> Loads::ring_edges(int channel) const {
  const auto& ring = graphs_.rings[static_cast<size_t>(channel) % graphs_.rings.size()];
  const auto flow = static_cast<uint64_t>(channel);
  std::vector<Edge> out;
  const auto add = [&](uint32_t from, uint32_t to, uint32_t nic_from, uint32_t nic_to) {
    std::vector<LinkId> route;
    if (from != to) hop(from, to, nic_from, nic_to, flow, route);
    out.push_back({from, to, count(route)});
  };
  for (size_t g = 0; g < ring.size(); ++g) {
    const NodePath& here = ring[g];
    const NodePath& next = ring[(g + 1) % ring.size()];
    for (size_t i = 1; i < here.members.size(); ++i) {
      add(here.members[i - 1], here.members[i], 0, 0);
    }
    add(here.members.back(), next.members.front(), here.nic, next.nic);
  }
  return out;
}

std::vector<Loads::Edge> Loads::tree_edges(int channel, bool nodes_only) const {
  const auto& paths = graphs_.rings[static_cast<size_t>(channel) % graphs_.rings.size()];
  const int nodes = static_cast<int>(placement_.groups.size());
  std::vector<Edge> out;
  const auto add = [&](uint32_t a, uint32_t b, uint32_t nic_a, uint32_t nic_b, uint64_t flow) {
    std::vector<LinkId> up, down;
    hop(a, b, nic_a, nic_b, flow, up);
    hop(b, a, nic_b, nic_a, flow, down);
    out.push_back({a, b, count(up)});
    out.push_back({b, a, count(down)});
  };
  for (int n = 0; n < nodes; ++n) {
    const TreeNode tree = binary_tree(n, nodes, channel % 2);
    if (tree.up < 0) continue;
    const NodePath& here = paths[static_cast<size_t>(n)];
    const NodePath& parent = paths[static_cast<size_t>(tree.up)];
    add(here.members.front(), parent.members.front(), here.nic, parent.nic,
        static_cast<uint64_t>(channel));
  }
  if (nodes_only) return out;
  for (const NodePath& path : paths) {
    for (size_t i = 1; i < path.members.size(); ++i) {
      add(path.members[i], path.members[i - 1], 0, 0, 0);
    }
  }
  return out;
}

std::vector<LinkWeight> Loads::exchange(uint32_t from, uint32_t to) const {
  std::vector<LinkId> route;
  hop(from, to, nic_of(from, to), nic_of(to, from), from, route);
  return count(route);
}

}  // namespace rehearse::sim
