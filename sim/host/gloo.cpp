// SPDX-License-Identifier: Apache-2.0
#include "sim/host/gloo.hpp"

#include <algorithm>
#include <bit>

namespace rehearse::sim {
namespace {

using traces::Collective;

// Priors: a message through the kernel's TCP stack on both sides; what one connection carries; the
// rate at which one core adds floats from memory.
constexpr double kGlooMessageUs = 30;
constexpr double kGlooLocalUs = 15;
constexpr BytesPerSec kGlooStream = 2.5e9;
constexpr BytesPerSec kGlooLocalStream = 4e9;
constexpr BytesPerSec kGlooReduction = 5e9;

}  // namespace

HostPlan gloo_plan(const traces::Call& call, uint32_t members) {
  const double n = std::max(1U, members);
  const auto bytes = static_cast<double>(std::max(call.bytes_in, call.bytes_out));
  const auto log2 = static_cast<int64_t>(std::bit_width(std::max(1U, members) - 1));
  const auto others = static_cast<int64_t>(members) - 1;
  HostPlan plan;
  plan.root = static_cast<uint32_t>(std::max(0, call.peer)) % std::max(1U, members);
  switch (call.collective) {
    case Collective::kAllGather:
      plan = {"GLOO/RING", HostPattern::kRing, others, bytes * (n - 1) / n, false, 0};
      break;
    case Collective::kReduceScatter:
      plan = {"GLOO/RING", HostPattern::kRing, others, bytes * (n - 1) / n, true, 0};
      break;
    case Collective::kBroadcast:
      plan = {"GLOO/TREE", HostPattern::kTree, log2, bytes, false, plan.root};
      break;
    case Collective::kReduce:
      plan = {"GLOO/TREE", HostPattern::kTree, log2, bytes, true, plan.root};
      break;
    case Collective::kAllToAll:
      plan = {"GLOO/PAIRS", HostPattern::kPairs, others, bytes / n, false, 0};
      break;
    case Collective::kGather:
    case Collective::kScatter:
      plan = {"GLOO/ROOT", HostPattern::kRoot, others, bytes / n, false, plan.root};
      break;
    case Collective::kBarrier:
      plan = {"GLOO/DISSEMINATION", HostPattern::kRing, log2, 0, false, 0};
      break;
    default:
      plan = {"GLOO/RING", HostPattern::kRing, 2 * others, bytes * 2 * (n - 1) / n, true, 0};
  }
  return plan;
}

Result<HostWires> gloo_wires(const ModelContext& context, const Placement& placement) {
  HostWires wires{false,         {}, kGlooMessageUs, kGlooLocalUs, kGlooStream, kGlooLocalStream,
                  kGlooReduction};
  for (const LocalGroup& group : placement.groups) {
    const pb::Node& node = context.platform.nodes(static_cast<int>(group.node));
    const auto& env = placement.members[group.members.front()].env;
    const auto filter = env.find("GLOO_SOCKET_IFNAME");
    const uint32_t face = host_interface(node, filter == env.end() ? "" : filter->second);
    if (face == UINT32_MAX && placement.groups.size() > 1) {
      return fail(Code::kBadInput, "no IP interface is usable for Gloo", node.name(),
                  "check GLOO_SOCKET_IFNAME and the node's interfaces");
    }
    wires.port.push_back(face);
  }
  return wires;
}

}  // namespace rehearse::sim
