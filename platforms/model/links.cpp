// SPDX-License-Identifier: Apache-2.0
#include "platforms/model/links.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "platforms/model/topology.hpp"

namespace rehearse::platforms {
namespace {

using Route = std::vector<LinkId>;

void push(LinkId id, Route& route) {
  if (id != kNoLink) route.push_back(id);
}

// From the device up to, but not through, the switch `until`; kNone: to the root complex.
void climb(const NodeTopology& node, const Element& from, uint32_t until, Route& route) {
  push(from.up, route);
  for (uint32_t at = from.parent; at != kNone && at != until; at = node.switches[at].parent) {
    push(node.switches[at].up, route);
  }
}

void descend(const NodeTopology& node, const Element& to, uint32_t until, Route& route) {
  const auto start = static_cast<ptrdiff_t>(route.size());
  push(to.down, route);
  for (uint32_t at = to.parent; at != kNone && at != until; at = node.switches[at].parent) {
    push(node.switches[at].down, route);
  }
  std::reverse(route.begin() + start, route.end());
}

// The lowest switch above both; kNone: they meet at the root complex or above.
uint32_t meeting(const NodeTopology& node, const Element& a, const Element& b) {
  for (uint32_t x = a.parent; x != kNone; x = node.switches[x].parent) {
    for (uint32_t y = b.parent; y != kNone; y = node.switches[y].parent) {
      if (x == y) return x;
    }
  }
  return kNone;
}

void cross_sockets(const NodeTopology& node, uint32_t from, uint32_t to, Route& route) {
  if (from == to) return;
  push(node.numa[from].socket.out, route);
  push(node.numa[to].socket.in, route);
}

// Device to device: through their common switch, else through the root complex.
void peer(const NodeTopology& node, const Element& from, const Element& to, Route& route) {
  const uint32_t meet = node.acs ? kNone : meeting(node, from, to);
  climb(node, from, meet, route);
  if (meet == kNone) {
    push(node.numa[from.numa].host, route);
    cross_sockets(node, from.numa, to.numa, route);
    if (from.numa != to.numa) push(node.numa[to.numa].host, route);
  }
  descend(node, to, meet, route);
}

// Device to device through host memory: a store on one side, a load on the other.
void staged(const NodeTopology& node, const Element& from, const Element& to, Route& route) {
  climb(node, from, kNone, route);
  push(node.numa[from.numa].host, route);
  cross_sockets(node, from.numa, to.numa, route);
  push(node.numa[to.numa].host, route);
  descend(node, to, kNone, route);
}

Links::Distance classify(const NodeTopology& node, const Element& a, const Element& b) {
  const uint32_t meet = meeting(node, a, b);
  if (meet == kNone) return a.numa == b.numa ? Links::Distance::kPhb : Links::Distance::kSys;
  return a.parent == meet && b.parent == meet ? Links::Distance::kPix : Links::Distance::kPxb;
}

// splitmix64: spreads consecutive flow numbers over the paths.
uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

void cross_fabric(const FabricTopology& fabric, uint32_t from, uint32_t to, uint64_t flow,
                  Route& route) {
  if (fabric.kind == pb::NO_FABRIC || from != to) push(fabric.none, route);
  if (from == to || fabric.leaves.empty()) return;
  const auto spine = static_cast<uint32_t>(fabric.spines > 1 ? mix(flow) % fabric.spines : 0);
  const bool adaptive = !fabric.bundled.empty();
  const bool one_path = !adaptive || flow != kSpreadFlow;
  if (adaptive) push(fabric.bundled[from].out, route);
  if (one_path) push(fabric.leaves[size_t{from} * fabric.spines + spine].out, route);
  if (fabric.leaves_per_group) {
    const uint32_t a = from / fabric.leaves_per_group, b = to / fabric.leaves_per_group;
    if (a != b && fabric.bundles != kNoLink) {
      route.push_back(fabric.bundles + a * (fabric.groups - 1) + (b < a ? b : b - 1));
    }
    if (a != b && !fabric.pods.empty()) {
      push(fabric.pods[a].out, route);
      push(fabric.pods[b].in, route);
    }
  }
  if (one_path) push(fabric.leaves[size_t{to} * fabric.spines + spine].in, route);
  if (adaptive) push(fabric.bundled[to].in, route);
}

}  // namespace

const char* name_of(LinkKind kind) {
  switch (kind) {
    case LinkKind::kNvlink:
      return "nvlink";
    case LinkKind::kPcie:
      return "pcie";
    case LinkKind::kHost:
      return "host";
    case LinkKind::kC2c:
      return "c2c";
    case LinkKind::kNic:
      return "nic";
    case LinkKind::kSwitch:
      return "switch";
    case LinkKind::kInterface:
      return "interface";
    case LinkKind::kStorage:
      return "storage";
  }
  return "";
}

Result<Links> Links::build(const pb::Platform& expanded) {
  Draft draft;
  draft.topology.nodes.reserve(static_cast<size_t>(expanded.nodes_size()));
  std::unordered_map<std::string_view, uint32_t> domains;
  for (int i = 0; i < expanded.nodes_size(); ++i) {
    if (auto ok = add_node(expanded, static_cast<uint32_t>(i), draft); !ok) {
      return tl::unexpected(std::move(ok).error());
    }
    const auto& nvswitch = expanded.nodes(i).nvswitch();
    if (nvswitch.count() && !nvswitch.domain().empty()) {
      const auto next = static_cast<uint32_t>(domains.size());
      draft.topology.nodes.back().domain = domains.emplace(nvswitch.domain(), next).first->second;
    }
  }
  if (auto ok = add_fabric(expanded, draft); !ok) return tl::unexpected(std::move(ok).error());
  for (const auto& each : expanded.storage()) {
    const auto add = [&](const char* way, BytesPerSec capacity) {
      return draft.add({.name = fmt::format("{}/{}", each.name(), way),
                        .kind = LinkKind::kStorage,
                        .capacity = capacity,
                        .latency = each.latency()});
    };
    const LinkId write = add("write", each.write());
    draft.topology.shares.push_back({write, add("read", each.read())});
  }
  Links links;
  links.links_ = std::move(draft.links);
  links.topology_ = std::make_shared<const Topology>(std::move(draft.topology));
  if (auto ok = override_links(expanded, links, links.topology_->fabric, links.links_); !ok) {
    return tl::unexpected(std::move(ok).error());
  }
  return links;
}

LinkId Links::find(std::string_view name) const {
  LinkId first = topology_->nodes.empty() ? 0 : topology_->nodes.back().last;
  auto last = static_cast<LinkId>(links_.size());
  const auto node = topology_->node_names.find(std::string(name.substr(0, name.find('/'))));
  if (node != topology_->node_names.end()) {
    first = topology_->nodes[node->second].first;
    last = topology_->nodes[node->second].last;
  }
  for (LinkId id = first; id < last; ++id) {
    if (links_[id].name == name) return id;
  }
  return kNoLink;
}

bool Links::nvlink(GpuRef from, GpuRef to, Route& route) const {
  const NodeTopology& a = topology_->nodes[from.node];
  const NodeTopology& b = topology_->nodes[to.node];
  if (from == to) return true;
  if (from.node == to.node) {
    const auto pair = std::lower_bound(
        a.pairs.begin(), a.pairs.end(), std::pair(from.gpu, to.gpu),
        [](const NvlinkTo& x, const auto& key) { return std::pair(x.from, x.to) < key; });
    if (pair != a.pairs.end() && pair->from == from.gpu && pair->to == to.gpu) {
      route.push_back(pair->link);
      return true;
    }
  } else if (a.domain == kNone || a.domain != b.domain) {
    return false;
  }
  if (a.nvlink[from.gpu].out == kNoLink || b.nvlink[to.gpu].in == kNoLink) return false;
  route.push_back(a.nvlink[from.gpu].out);
  route.push_back(b.nvlink[to.gpu].in);
  return true;
}

void Links::pcie(GpuRef from, GpuRef to, Route& route) const {
  const NodeTopology& node = topology_->nodes[from.node];
  if (from != to) peer(node, node.gpus[from.gpu], node.gpus[to.gpu], route);
}

void Links::host(GpuRef from, GpuRef to, Route& route) const {
  const NodeTopology& node = topology_->nodes[from.node];
  staged(node, node.gpu_host[from.gpu], node.gpu_host[to.gpu], route);
}

void Links::gpu_to_nic(GpuRef gpu, uint32_t nic, bool direct, Route& route) const {
  const NodeTopology& node = topology_->nodes[gpu.node];
  if (direct) {
    peer(node, node.gpus[gpu.gpu], node.nics[nic], route);
  } else {
    staged(node, node.gpu_host[gpu.gpu], node.nics[nic], route);
  }
}

void Links::nic_to_gpu(uint32_t nic, GpuRef gpu, bool direct, Route& route) const {
  const NodeTopology& node = topology_->nodes[gpu.node];
  if (direct) {
    peer(node, node.nics[nic], node.gpus[gpu.gpu], route);
  } else {
    staged(node, node.nics[nic], node.gpu_host[gpu.gpu], route);
  }
}

void Links::network(uint32_t node_a, uint32_t nic_a, uint32_t node_b, uint32_t nic_b, uint64_t flow,
                    Route& route) const {
  const NodeTopology& a = topology_->nodes[node_a];
  const NodeTopology& b = topology_->nodes[node_b];
  route.push_back(a.ports[nic_a].out);
  cross_fabric(topology_->fabric, a.leaf[nic_a], b.leaf[nic_b], flow, route);
  route.push_back(b.ports[nic_b].in);
}

void Links::sockets(uint32_t node_a, uint32_t interface_a, uint32_t node_b, uint32_t interface_b,
                    Route& route) const {
  const NodeTopology& a = topology_->nodes[node_a];
  const NodeTopology& b = topology_->nodes[node_b];
  if (node_a == node_b) return;
  const InterfaceTopology& from = a.interfaces[interface_a];
  const InterfaceTopology& to = b.interfaces[interface_b];
  if (from.nic != kNone) {
    push(a.numa[a.nics[from.nic].numa].host, route);
    descend(a, a.nics[from.nic], kNone, route);
    push(a.ports[from.nic].out, route);
  } else {
    push(from.wire.out, route);
  }
  if (from.nic != kNone && to.nic != kNone) {
    cross_fabric(topology_->fabric, a.leaf[from.nic], b.leaf[to.nic], 0, route);
  }
  if (to.nic != kNone) {
    push(b.ports[to.nic].in, route);
    climb(b, b.nics[to.nic], kNone, route);
    push(b.numa[b.nics[to.nic].numa].host, route);
  } else {
    push(to.wire.in, route);
  }
}

void Links::gpu_to_host(GpuRef gpu, Route& route) const {
  const NodeTopology& node = topology_->nodes[gpu.node];
  climb(node, node.gpu_host[gpu.gpu], kNone, route);
  push(node.numa[node.gpu_host[gpu.gpu].numa].host, route);
}

void Links::host_to_gpu(GpuRef gpu, Route& route) const {
  const NodeTopology& node = topology_->nodes[gpu.node];
  push(node.numa[node.gpu_host[gpu.gpu].numa].host, route);
  descend(node, node.gpu_host[gpu.gpu], kNone, route);
}

void Links::host_to_disk(uint32_t node, uint32_t disk, Route& route) const {
  push(topology_->nodes[node].storage[disk].out, route);
}

void Links::disk_to_host(uint32_t node, uint32_t disk, Route& route) const {
  push(topology_->nodes[node].storage[disk].in, route);
}

void Links::host_to_share(uint32_t node, uint32_t share, Route& route) const {
  const NodeTopology& from = topology_->nodes[node];
  if (from.lan != kNone) {
    const InterfaceTopology& lan = from.interfaces[from.lan];
    push(lan.nic == kNone ? lan.wire.out : from.ports[lan.nic].out, route);
  }
  push(topology_->shares[share].out, route);
}

void Links::share_to_host(uint32_t node, uint32_t share, Route& route) const {
  push(topology_->shares[share].in, route);
  const NodeTopology& to = topology_->nodes[node];
  if (to.lan == kNone) return;
  const InterfaceTopology& lan = to.interfaces[to.lan];
  push(lan.nic == kNone ? lan.wire.in : to.ports[lan.nic].in, route);
}

Links::Distance Links::distance(GpuRef gpu, uint32_t nic) const {
  const NodeTopology& node = topology_->nodes[gpu.node];
  return classify(node, node.gpus[gpu.gpu], node.nics[nic]);
}

Links::Distance Links::distance(GpuRef a, GpuRef b) const {
  const NodeTopology& node = topology_->nodes[a.node];
  return classify(node, node.gpus[a.gpu], node.gpus[b.gpu]);
}

}  // namespace rehearse::platforms
