// SPDX-License-Identifier: Apache-2.0
#include "sim/host/host_collective.hpp"

#include <algorithm>
#include <map>

#include "sim/nccl/environment.hpp"
#include "sim/nccl/timing.hpp"

namespace rehearse::sim {
namespace {

using platforms::LinkId;

size_t host_group(const Placement& placement, uint32_t member) {
  return placement.members[member].group;
}

// Every edge of the pattern as pairs of members.
std::vector<std::pair<uint32_t, uint32_t>> edges(const HostPlan& plan, uint32_t members) {
  std::vector<std::pair<uint32_t, uint32_t>> out;
  for (uint32_t m = 0; m < members; ++m) {
    switch (plan.pattern) {
      case HostPattern::kRing:
        out.emplace_back(m, (m + 1) % members);
        break;
      case HostPattern::kTree:
        // The parent of m clears its lowest bit, counted from the root.
        if (m > 0)
          out.emplace_back((plan.root + (m & (m - 1))) % members, (plan.root + m) % members);
        break;
      case HostPattern::kPairs:
        for (uint32_t other = 0; other < members; ++other) {
          if (other != m) out.emplace_back(m, other);
        }
        break;
      case HostPattern::kRoot:
        if (m != plan.root) out.emplace_back(plan.root, m);
        break;
    }
  }
  return out;
}

}  // namespace

uint32_t host_interface(const pb::Node& node, const std::string& filter) {
  for (int i = 0; i < node.interfaces_size(); ++i) {
    const pb::Interface& face = node.interfaces(i);
    if (face.down()) continue;
    const bool fits = filter.empty() ? face.kind() == pb::LAN : name_allowed(face.name(), filter);
    if (fits) return static_cast<uint32_t>(i);
  }
  return UINT32_MAX;
}

CallTraffic host_traffic(const ModelContext& context, const Placement& placement,
                         const HostWires& wires, const HostPlan& plan, const traces::Call& call) {
  const auto members = static_cast<uint32_t>(placement.members.size());
  const bool several = std::any_of(
      placement.members.begin(), placement.members.end(),
      [&](const Member& m) { return m.gpu.node != placement.members.front().gpu.node; });
  std::map<LinkId, double> load;
  std::vector<LinkId> route;
  for (const auto& [from, to] : edges(plan, members)) {
    const size_t a = host_group(placement, from), b = host_group(placement, to);
    if (a == b) continue;
    route.clear();
    if (wires.rdma) {
      context.links.network(placement.groups[a].node, wires.port[a], placement.groups[b].node,
                            wires.port[b], from, route);
    } else {
      context.links.sockets(placement.groups[a].node, wires.port[a], placement.groups[b].node,
                            wires.port[b], route);
    }
    for (const LinkId link : route) load[link] += 1;
  }
  double most = 1;
  for (const auto& [link, uses] : load) most = std::max(most, uses);
  const double unit = std::max(1.0, most / 256);

  CallTraffic out;
  out.algorithm = plan.algorithm;
  out.channels = 1;
  FlowLoad flow;
  for (const auto& [link, uses] : load) {
    flow.links.push_back({link, static_cast<uint32_t>(std::max(1.0, uses / unit + 0.5))});
  }
  flow.bytes = plan.bytes * unit;
  double cap = several ? wires.stream : wires.local_stream;
  if (several && wires.local_stream > 0 && members > placement.groups.size()) {
    cap = cap > 0 ? std::min(cap, wires.local_stream) : wires.local_stream;
  }
  if (plan.reduces && wires.reduction > 0) {
    cap = cap > 0 ? std::min(cap, wires.reduction) : wires.reduction;
  }
  flow.cap = cap * unit;

  FlowLoad copy;
  route.clear();
  context.links.gpu_to_host(placement.members.front().gpu, route);
  for (const LinkId link : route) copy.links.push_back({link, 1});
  const double rate = rate_alone(context, copy);
  const auto staged = static_cast<double>(call.bytes_in + call.bytes_out);
  if (rate > 0 && staged > 0)
    out.parts.push_back({"copies to the host and back", 1, staged / rate * 1e6});
  if (plan.rounds > 0) {
    out.parts.push_back({several ? "messages between nodes" : "messages inside the node",
                         plan.rounds, several ? wires.message_us : wires.local_us});
  }
  out.latency = sum_of(out.parts);
  const auto bytes = static_cast<double>(std::max(call.bytes_in, call.bytes_out));
  out.bus_bytes = bytes;
  if (flow.bytes > 0 && (flow.cap > 0 || !flow.links.empty())) out.flows.push_back(std::move(flow));
  return out;
}

}  // namespace rehearse::sim
