// SPDX-License-Identifier: Apache-2.0
#include "sim/nccl/loads.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace rehearse::sim {
namespace {

using platforms::LinkId;

void add_route(const std::vector<LinkId>& route, uint32_t weight, std::vector<LinkWeight>& out) {
  for (const LinkId link : route) out.push_back({link, weight});
}

// What switches hash: the ends, the channel and the queue pair of a connection.
uint64_t flow_number(uint32_t from, uint32_t to, uint64_t channel, uint32_t queue_pair) {
  return (((uint64_t{from} << 20 ^ to) << 10 ^ channel) << 8) ^ queue_pair;
}

}  // namespace

std::vector<LinkWeight> merged(std::vector<LinkWeight>& crossings) {
  std::sort(crossings.begin(), crossings.end(),
            [](const LinkWeight& a, const LinkWeight& b) { return a.link < b.link; });
  std::vector<LinkWeight> out;
  for (const LinkWeight& use : crossings) {
    if (!out.empty() && out.back().link == use.link) {
      out.back().weight += use.weight;
    } else {
      out.push_back(use);
    }
  }
  return out;
}

std::vector<LinkWeight> scaled(const std::map<LinkId, double>& crossings, uint32_t most,
                               double& unit) {
  double largest = 1;
  for (const auto& [link, number] : crossings) largest = std::max(largest, number);
  unit = std::max(1.0, largest / most);
  std::vector<LinkWeight> out;
  out.reserve(crossings.size());
  for (const auto& [link, number] : crossings) {
    out.push_back({link, static_cast<uint32_t>(std::max(1.0, std::nearbyint(number / unit)))});
  }
  return out;
}

Queues queues_of(const Placement& placement, int64_t messages, int64_t message_bytes) {
  Queues out;
  out.messages = std::max<int64_t>(1, messages);
  out.message_bytes = std::max<int64_t>(1, message_bytes);
  const bool rdma =
      placement.inter == InterTransport::kRdmaDirect || placement.inter == InterTransport::kRdma;
  if (!rdma) return out;
  uint32_t queue_pairs = 1, ports = 1;
  for (const Member& member : placement.members) {
    queue_pairs = std::max(queue_pairs, member.network.queue_pairs);
  }
  for (const LocalGroup& group : placement.groups) {
    for (const SystemNet& net : group.system().nets) {
      ports = std::max(ports, static_cast<uint32_t>(net.ports.size()));
    }
  }
  out.units = queue_pairs * ports;
  return out;
}

void Loads::near_hop(const Member& a, const Member& b, std::vector<LinkId>& route) const {
  const platforms::Links& links = context_.links;
  switch (placement_.between(a, b)) {
    case PairTransport::kNvlink:
      if (links.nvlink(a.gpu, b.gpu, route)) return;
      break;
    case PairTransport::kNvlinkVia: {
      const LocalGroup& group = placement_.groups[a.group];
      const uint32_t via = group.system().gpu_path(a.local, b.local).via;
      if (via < group.by_gpu.size()) {
        const GpuRef middle = placement_.members[group.by_gpu[via]].gpu;
        if (links.nvlink(a.gpu, middle, route) && links.nvlink(middle, b.gpu, route)) return;
      }
      break;
    }
    case PairTransport::kHost:
      return links.host(a.gpu, b.gpu, route);
    case PairTransport::kPcie:
      break;
  }
  links.pcie(a.gpu, b.gpu, route);
}

void Loads::send(End from, uint32_t nic, std::vector<LinkId>& route) const {
  const Member& member = placement_.members[from.member];
  const LocalGroup& group = placement_.groups[member.group];
  const NodeSystem& system = group.system();
  GpuRef owner = member.gpu;
  const Path& path = system.to_net(member.local, from.net);
  if (path.type == PathType::kPxn && path.via < group.by_gpu.size()) {
    const Member& beside = placement_.members[group.by_gpu[path.via]];
    near_hop(member, beside, route);
    owner = beside.gpu;
  }
  context_.links.gpu_to_nic(owner, nic, system.gpu_direct_send(member.local, from.net), route);
}

void Loads::receive(End to, uint32_t nic, std::vector<LinkId>& route) const {
  const Member& member = placement_.members[to.member];
  const NodeSystem& system = placement_.groups[member.group].system();
  context_.links.nic_to_gpu(nic, member.gpu, system.gpu_direct(member.local, to.net), route);
}

void Loads::far_hop(End from, End to, uint64_t channel, uint32_t unit,
                    std::vector<LinkId>& route) const {
  const Member& a = placement_.members[from.member];
  const Member& b = placement_.members[to.member];
  const LocalGroup& here = placement_.groups[a.group];
  const LocalGroup& there = placement_.groups[b.group];
  const SystemNet& out = here.system().nets[from.net];
  const SystemNet& in = there.system().nets[to.net];
  const uint32_t host_out = here.hosts[out.host], host_in = there.hosts[in.host];
  const platforms::Links& links = context_.links;
  if (placement_.inter == InterTransport::kSocket) {
    links.gpu_to_host(a.gpu, route);
    links.sockets(host_out, out.index, host_in, in.index, route);
    links.host_to_gpu(b.gpu, route);
    return;
  }
  const uint32_t nic_out = out.ports[unit % out.ports.size()];
  const uint32_t nic_in = in.ports[unit % in.ports.size()];
  const pb::NicKind kind =
      context_.platform.nodes(static_cast<int>(host_out)).nics(static_cast<int>(nic_out)).kind();
  // Without splitting each message takes the next queue pair.
  const NetworkSettings& own = a.network;
  const auto used = static_cast<uint32_t>(
      own.split_data ? own.queue_pairs : std::min<int64_t>(own.queue_pairs, queues_.messages));
  const auto queue_pair = static_cast<uint32_t>(unit / out.ports.size()) % std::max(1U, used);
  // InfiniBand routes by destination; RoCE hashes what tells connections apart.
  uint64_t flow = kind == pb::INFINIBAND ? flow_number(0, host_in, nic_in, 0)
                                         : flow_number(from.member, to.member, channel, queue_pair);
  const int64_t message =
      own.split_data ? queues_.message_bytes / std::max(1U, used) : queues_.message_bytes;
  if (asks_for_spreading(own, kind, message)) flow = platforms::kSpreadFlow;
  send(from, nic_out, route);
  links.network(host_out, nic_out, host_in, nic_in, flow, route);
  receive(to, nic_in, route);
}

void Loads::hop(End from, End to, uint64_t channel, Crossings& out) const {
  const Member& a = placement_.members[from.member];
  const Member& b = placement_.members[to.member];
  std::vector<LinkId> route;
  if (a.group == b.group) {
    near_hop(a, b, route);
    return add_route(route, queues_.units, out);
  }
  for (uint32_t unit = 0; unit < queues_.units; ++unit) {
    route.clear();
    far_hop(from, to, channel, unit, route);
    add_route(route, 1, out);
  }
}

std::vector<LinkWeight> Loads::rings(int channels) const {
  Crossings route;
  for (int c = 0; c < channels; ++c) {
    const auto& ring = graphs_.rings[static_cast<size_t>(c) % graphs_.rings.size()];
    for (size_t g = 0; g < ring.size(); ++g) {
      const NodePath& here = ring[g];
      const NodePath& next = ring[(g + 1) % ring.size()];
      for (size_t i = 1; i < here.members.size(); ++i) {
        hop({here.members[i - 1], 0}, {here.members[i], 0}, 0, route);
      }
      if (here.members.back() != next.members.front()) {
        hop({here.members.back(), here.nic_out}, {next.members.front(), next.nic},
            static_cast<uint64_t>(c), route);
      }
    }
  }
  return merged(route);
}

std::vector<Loads::Edge> Loads::ring_edges(int channel) const {
  const auto& ring = graphs_.rings[static_cast<size_t>(channel) % graphs_.rings.size()];
  std::vector<Edge> out;
  const auto add = [&](End from, End to) {
    Crossings route;
    if (from.member != to.member) hop(from, to, static_cast<uint64_t>(channel), route);
    out.push_back({from.member, to.member, merged(route)});
  };
  for (size_t g = 0; g < ring.size(); ++g) {
    const NodePath& here = ring[g];
    const NodePath& next = ring[(g + 1) % ring.size()];
    for (size_t i = 1; i < here.members.size(); ++i) {
      add({here.members[i - 1], 0}, {here.members[i], 0});
    }
    add({here.members.back(), here.nic_out}, {next.members.front(), next.nic});
  }
  return out;
}

// Child and parent of every edge: between nodes by the binary tree of the channel, inside along the
// path from the end towards its first GPU.
std::vector<Loads::Bond> Loads::head_bonds(int channel) const {
  const int nodes = static_cast<int>(placement_.groups.size());
  const auto turn = static_cast<uint32_t>(channel);
  std::vector<Bond> out;
  for (size_t h = 0; h < static_cast<size_t>(graphs_.shape.nvls_heads); ++h) {
    // A GPU with several adapters of its own takes them in turn.
    const auto end = [&](int group) {
      const uint32_t head = graphs_.heads[static_cast<size_t>(group)][h];
      const bool several = net_for_receive(head, 0) != net_for_receive(head, 1);
      return End{head, several ? net_for_receive(head, turn)
                               : graphs_.head_nics[static_cast<size_t>(group)][h]};
    };
    for (int n = 0; n < nodes; ++n) {
      const TreeNode tree = binary_tree(n, nodes, channel % 2);
      for (const int child : tree.down) {
        if (child >= 0) out.push_back({end(child), end(n)});
      }
    }
  }
  return out;
}

std::vector<Loads::Bond> Loads::tree_bonds(int channel, bool nodes_only) const {
  if (nodes_only && graphs_.shape.nvls_heads > 0) return head_bonds(channel);
  const auto& paths = graphs_.trees[static_cast<size_t>(channel) % graphs_.trees.size()];
  // The GPU at the head of a path has the NIC by which the channel comes in, another the second.
  const auto end = [](const NodePath& path, uint32_t member) {
    return End{member, member == path.members.front() ? path.nic : path.nic_out};
  };
  std::vector<Bond> out;
  const int nodes = static_cast<int>(placement_.groups.size());
  const int which = graphs_.tree_of(channel);
  for (int n = 0; n < nodes; ++n) {
    const TreeNode tree = binary_tree(n, nodes, which);
    const NodePath& up = paths[static_cast<size_t>(n)];
    for (int child = 0; child < 2; ++child) {
      if (tree.down[child] < 0) continue;
      const NodePath& down = paths[static_cast<size_t>(tree.down[child])];
      out.push_back({end(down, graphs_.to_parent(down)), end(up, graphs_.to_child(up, child))});
    }
  }
  if (nodes_only) return out;
  for (const NodePath& path : paths) {
    for (size_t i = 1; i < path.members.size(); ++i) {
      out.push_back({{path.members[i], 0}, {path.members[i - 1], 0}});
    }
  }
  return out;
}

std::vector<Loads::Edge> Loads::tree_edges(int channel, bool nodes_only) const {
  std::vector<Edge> out;
  for (const Bond& bond : tree_bonds(channel, nodes_only)) {
    Crossings up, down;
    hop(bond.a, bond.b, static_cast<uint64_t>(channel), up);
    hop(bond.b, bond.a, static_cast<uint64_t>(channel), down);
    out.push_back({bond.a.member, bond.b.member, merged(up)});
    out.push_back({bond.b.member, bond.a.member, merged(down)});
  }
  return out;
}

std::vector<LinkWeight> Loads::node_trees(int channels) const {
  Crossings route;
  for (int c = 0; c < channels; ++c) {
    for (const Bond& bond : tree_bonds(c, true)) {
      hop(bond.a, bond.b, static_cast<uint64_t>(c), route);
      hop(bond.b, bond.a, static_cast<uint64_t>(c), route);
    }
  }
  return merged(route);
}

std::vector<LinkWeight> Loads::trees(int channels) const {
  Crossings route;
  for (int c = 0; c < channels; ++c) {
    for (const Bond& bond : tree_bonds(c, false)) {
      hop(bond.a, bond.b, static_cast<uint64_t>(c), route);
      hop(bond.b, bond.a, static_cast<uint64_t>(c), route);
    }
  }
  return merged(route);
}

std::vector<LinkWeight> Loads::nvls(uint32_t out, uint32_t in) const {
  std::vector<LinkWeight> loads;
  for (const LocalGroup& group : placement_.groups) {
    for (size_t i = 0; i < group.members.size(); ++i) {
      // Through the switch to any other GPU: the first link is ours out, the last the other's in.
      std::vector<LinkId> route;
      const uint32_t other = group.members[(i + 1) % group.members.size()];
      near_hop(placement_.members[group.members[i]], placement_.members[other], route);
      if (route.size() < 2) continue;
      loads.push_back({route.front(), out});
      loads.push_back({route.back(), in});
    }
  }
  return loads;
}

uint32_t Loads::net_for_receive(uint32_t member, uint32_t channel) const {
  const Member& own = placement_.members[member];
  if (placement_.groups.size() < 2) return 0;
  const uint32_t net = group_of(member).system().local_net(own.local, channel);
  return net == UINT32_MAX ? 0 : net;
}

uint32_t Loads::net_for_send(uint32_t member, uint32_t peer, uint32_t channel) const {
  const Member& own = placement_.members[member];
  if (own.group == placement_.members[peer].group) return 0;
  const LocalGroup& group = group_of(member);
  const NodeSystem& system = group.system();
  const uint32_t local = net_for_receive(member, channel);
  const TopologySettings& settings = group.settings;
  const int level = settings.pxn ? settings.p2p_pxn_level : 0;
  if (settings.cross_nic != 0 && level == 0) return local;
  // The NIC of our GPU that has the peer's number, so that both ends are on one rail.
  uint32_t twin = UINT32_MAX;
  for (uint32_t g = 0; g < system.gpus.size(); ++g) {
    if (system.devices[system.gpus[g]].index == placement_.members[peer].gpu.gpu) twin = g;
  }
  if (twin == UINT32_MAX) return local;
  const uint32_t net = system.local_net(twin, channel);
  if (net == UINT32_MAX) return local;
  if (settings.cross_nic == 0) return net;
  if (level == 1) return system.to_net(own.local, net).type <= PathType::kPxn ? net : local;
  const uint32_t owner = system.nets[net].local_gpu;
  if (owner == UINT32_MAX) return local;
  const PathType farthest = settings.pxn_c2c ? PathType::kP2c : PathType::kPxb;
  const bool beside = system.gpu_path(owner, own.local).type <= PathType::kNvl;
  return beside && system.to_net(owner, net).type <= farthest ? net : local;
}

std::vector<LinkWeight> Loads::pair(uint32_t from, uint32_t to, uint32_t weight) const {
  Crossings route;
  hop({from, net_for_send(from, to, 0)}, {to, net_for_receive(to, 0)}, 0, route);
  std::vector<LinkWeight> out = merged(route);
  for (LinkWeight& use : out) use.weight *= weight;
  return out;
}

Loads::Leaves Loads::leaves(uint32_t from, uint32_t to) const {
  const Member& a = placement_.members[from];
  const Member& b = placement_.members[to];
  const LocalGroup& group = group_of(from);
  const auto member_of = [&](uint32_t local) {
    return local < group.by_gpu.size() ? group.by_gpu[local] : UINT32_MAX;
  };
  if (a.group == b.group) {
    if (placement_.between(a, b) != PairTransport::kNvlinkVia) return {};
    return {UINT32_MAX, member_of(group.system().gpu_path(a.local, b.local).via)};
  }
  if (placement_.inter == InterTransport::kSocket || placement_.inter == InterTransport::kNvlink) {
    return {};
  }
  Leaves out{net_for_send(from, to, to), UINT32_MAX};
  const Path& path = group.system().to_net(a.local, out.net);
  if (path.type == PathType::kPxn) out.through = member_of(path.via);
  return out;
}

std::vector<LinkWeight> Loads::exchange(uint32_t from, uint32_t to) const {
  Crossings route;
  hop({from, net_for_send(from, to, to)}, {to, net_for_receive(to, from)}, 0, route);
  return merged(route);
}

std::vector<LinkWeight> Loads::all_pairs(double& unit) const {
  // Per link, not per pair: what a card or an uplink carries is counted, whoever it is for.
  const auto members = static_cast<uint32_t>(placement_.members.size());
  std::vector<double> crossings(context_.links.size(), 0);
  Crossings route;
  for (uint32_t a = 0; a < members; ++a) {
    for (uint32_t b = 0; b < members; ++b) {
      if (a == b) continue;
      route.clear();
      hop({a, net_for_send(a, b, b)}, {b, net_for_receive(b, a)}, 0, route);
      for (const LinkWeight& use : route) {
        crossings[use.link] += static_cast<double>(use.weight) / queues_.units;
      }
    }
  }
  std::map<LinkId, double> load;
  for (LinkId link = 0; link < crossings.size(); ++link) {
    if (crossings[link] > 0) load.emplace_hint(load.end(), link, crossings[link]);
  }
  return scaled(load, kMostWeight, unit);
}

}  // namespace rehearse::sim
