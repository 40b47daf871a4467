// SPDX-License-Identifier: Apache-2.0
// Loads of CollNet (NCCL model §7.7). Switches reduce what comes from below and send one copy up, and
// copy what comes from above: so a port carries the data once per direction, and a link between
// switches once however many nodes are below it.
#include <set>

#include "sim/nccl/loads.hpp"

namespace rehearse::sim {

void Loads::to_switches(const std::vector<End>& heads, uint64_t flow, Way way,
                        Crossings& out) const {
  std::set<LinkId> between;  // links of switches, once
  const auto nic_of = [&](const End& end) {
    const SystemNet& net = group_of(end.member).system().nets[end.net];
    return std::pair(group_of(end.member).hosts[net.host], net.ports[flow % net.ports.size()]);
  };
  const auto [root_host, root_nic] = nic_of(heads.front());
  for (const End& head : heads) {
    const auto [host, nic] = nic_of(head);
    // The port of a head, and the switches between it and the first head's.
    std::vector<LinkId> route, ends;
    if (way == Way::kUp) {
      send(head, nic, ends);
      context_.links.network(host, nic, root_host, root_nic, flow, route);
      ends.push_back(route.front());
    } else {
      context_.links.network(root_host, root_nic, host, nic, flow, route);
      ends.push_back(route.back());
      receive(head, nic, ends);
    }
    for (const LinkId link : ends) out.push_back({link, queues_.units});
    for (size_t i = 1; i + 1 < route.size(); ++i) between.insert(route[i]);
    // What the first head's leaf sends up and gets back.
    route.clear();
    context_.links.network(root_host, root_nic, host, nic, flow, route);
    if (way == Way::kUp) {
      for (size_t i = 1; i + 1 < route.size(); ++i) between.insert(route[i]);
    }
  }
  for (const LinkId link : between) out.push_back({link, queues_.units});
}

std::vector<LinkWeight> Loads::collnet_chains(int channels, Way way) const {
  Crossings out;
  if (graphs_.collnet_chains.empty()) return {};
  for (int c = 0; c < channels; ++c) {
    const auto& paths =
        graphs_.collnet_chains[static_cast<size_t>(c) % graphs_.collnet_chains.size()];
    std::vector<End> heads;
    for (const NodePath& path : paths) {
      heads.push_back({path.members.front(), path.nic});
      for (size_t i = 1; i < path.members.size(); ++i) {
        const End nearer{path.members[i - 1], 0}, farther{path.members[i], 0};
        hop(way == Way::kUp ? farther : nearer, way == Way::kUp ? nearer : farther, 0, out);
      }
    }
    to_switches(heads, static_cast<uint64_t>(c), way, out);
  }
  return merged(out);
}

std::vector<LinkWeight> Loads::collnet_heads(Way way) const {
  Crossings out;
  const auto heads = static_cast<size_t>(graphs_.shape.collnet_heads);
  for (size_t h = 0; h < heads; ++h) {
    std::vector<End> same;  // the head of this number on every node
    for (size_t g = 0; g < placement_.groups.size(); ++g) {
      const End head = {graphs_.collnet_heads[g][h].members.front(),
                        graphs_.collnet_heads[g][h].nic};
      same.push_back(head);
      for (const uint32_t member : placement_.groups[g].members) {
        if (member == head.member) continue;
        const End other{member, 0};
        hop(way == Way::kUp ? other : head, way == Way::kUp ? head : other, 0, out);
      }
    }
    to_switches(same, h, way, out);
  }
  return merged(out);
}

std::vector<LinkWeight> Loads::nvls_heads(Way way) const {
  Crossings out;
  for (size_t h = 0; h < static_cast<size_t>(graphs_.shape.nvls_heads); ++h) {
    std::vector<End> same;
    for (size_t g = 0; g < placement_.groups.size(); ++g) {
      same.push_back({graphs_.heads[g][h], graphs_.head_nics[g][h]});
    }
    to_switches(same, h, way, out);
  }
  return merged(out);
}

}  // namespace rehearse::sim
