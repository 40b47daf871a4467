// SPDX-License-Identifier: Apache-2.0
#include "sim/nccl/placement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/text.hpp"
#include "sim/nccl/environment.hpp"
#include "sim/scenario/environment.hpp"

namespace rehearse::sim {
namespace {

using platforms::Links;

std::string value_of(const std::map<std::string, std::string>& env, const char* name) {
  const auto at = env.find(name);
  return at == env.end() ? "" : at->second;
}

bool switched_on(const std::map<std::string, std::string>& env, const char* name) {
  const std::string value = value_of(env, name);
  return !value.empty() && value != "0";
}

bool is_rdma(const pb::Nic& nic) {
  return nic.kind() != pb::ETHERNET && nic.kind() != pb::NIC_KIND_UNSPECIFIED;
}

const pb::RankLaunch* find_rank(const pb::Launch& launch, uint32_t rank) {
  const auto at = std::lower_bound(
      launch.ranks().begin(), launch.ranks().end(), rank,
      [](const pb::RankLaunch& entry, uint32_t wanted) { return entry.rank() < wanted; });
  return at != launch.ranks().end() && at->rank() == rank ? &*at : nullptr;
}

// Why a rank cannot use RDMA; "" when it can.
std::string rdma_refusal(const pb::Node& node, const std::map<std::string, std::string>& env) {
  if (switched_on(env, "NCCL_IB_DISABLE"))
    return "NCCL_IB_DISABLE=" + value_of(env, "NCCL_IB_DISABLE");
  const std::string net = value_of(env, "NCCL_NET");
  if (net == "Socket" || net == "socket") return "NCCL_NET=" + net;
  bool any = false, up = false, allowed = false;
  for (const pb::Nic& nic : node.nics()) {
    if (!is_rdma(nic)) continue;
    any = true;
    if (nic.down()) continue;
    up = true;
    allowed |= name_allowed(nic.name(), value_of(env, "NCCL_IB_HCA"));
  }
  if (!any) return "no RDMA adapter";
  if (!up) return "all RDMA adapters are down";
  if (!allowed) return "NCCL_IB_HCA=" + value_of(env, "NCCL_IB_HCA") + " matches no adapter";
  return "";
}

// Why GPUDirect RDMA does not work for a GPU; "" when it does.
std::string direct_refusal(const ModelContext& context, const Member& member, uint32_t nic) {
  const pb::Node& node = context.platform.nodes(static_cast<int>(member.gpu.node));
  if (!node.nics(static_cast<int>(nic)).gpudirect()) return "GPUDirect RDMA is off on the adapter";
  const std::string level = value_of(member.env, "NCCL_NET_GDR_LEVEL");
  Links::Distance allowed = Links::Distance::kPxb;
  if (level == "LOC" || level == "0") return "NCCL_NET_GDR_LEVEL=" + level;
  if (level == "PIX" || level == "1") allowed = Links::Distance::kPix;
  if (level == "PHB" || level == "3") allowed = Links::Distance::kPhb;
  if (level == "SYS" || level == "4" || level == "5") allowed = Links::Distance::kSys;
  if (context.links.distance(member.gpu, nic) > allowed)
    return "the adapter is too far from the GPU";
  return "";
}

// RDMA NICs nearest to any of the group's GPUs.
std::vector<uint32_t> near_nics(const ModelContext& context, const Placement& placement,
                                const LocalGroup& group, bool ideal) {
  const pb::Node& node = context.platform.nodes(static_cast<int>(group.node));
  std::set<uint32_t> near;
  for (uint32_t m : group.members) {
    const Member& member = placement.members[m];
    Links::Distance best = Links::Distance::kSys;
    std::vector<uint32_t> nearest;
    for (int n = 0; n < node.nics_size(); ++n) {
      const pb::Nic& nic = node.nics(n);
      if (!is_rdma(nic)) continue;
      if (!ideal &&
          (nic.down() || !name_allowed(nic.name(), value_of(member.env, "NCCL_IB_HCA")))) {
        continue;
      }
      const auto distance = context.links.distance(member.gpu, static_cast<uint32_t>(n));
      if (distance < best || nearest.empty()) {
        if (distance < best) nearest.clear();
        best = std::min(best, distance);
      }
      if (distance == best) nearest.push_back(static_cast<uint32_t>(n));
    }
    near.insert(nearest.begin(), nearest.end());
  }
  return {near.begin(), near.end()};
}

// NCCL prefers IPoIB, then any other interface but loopback and docker's bridge.
uint32_t choose_interface(const pb::Node& node, const std::map<std::string, std::string>& env) {
  const std::string filter = value_of(env, "NCCL_SOCKET_IFNAME");
  uint32_t chosen = UINT32_MAX;
  for (int i = 0; i < node.interfaces_size(); ++i) {
    const pb::Interface& face = node.interfaces(i);
    if (face.down()) continue;
    // An interface that rides on a port goes down with it.
    const bool dead_port = std::any_of(
        node.nics().begin(), node.nics().end(),
        [&](const pb::Nic& nic) { return nic.down() && nic.interface() == face.name(); });
    if (dead_port) continue;
    if (!filter.empty()) {
      if (!name_allowed(face.name(), filter)) continue;
    } else if (face.kind() == pb::LOOPBACK || face.kind() == pb::BRIDGE) {
      continue;
    }
    if (!filter.empty() || face.kind() == pb::IPOIB) return static_cast<uint32_t>(i);
    if (chosen == UINT32_MAX) chosen = static_cast<uint32_t>(i);
  }
  return chosen;
}

class Placing {
 public:
  Placing(const ModelContext& context, const traces::Communicator& communicator)
      : context_(context), communicator_(communicator) {}

  Result<Placement> run() {
    if (auto seated = seat(); !seated) return tl::unexpected(seated.error());
    inside();
    if (out_.groups.size() > 1) {
      if (auto between = outside(); !between) return tl::unexpected(between.error());
    } else {
      out_.offered = offered_intra();
    }
    return std::move(out_);
  }

 private:
  Result<void> seat() {
    std::map<uint32_t, size_t> group_of;
    std::map<GpuRef, uint32_t> seats;
    for (uint32_t rank : communicator_.members) {
      const pb::RankLaunch* entry = find_rank(context_.launch, rank);
      if (entry == nullptr) {
        return fail(Code::kBadInput, fmt::format("rank {} is not launched", rank),
                    "communicator " + communicator_.id,
                    "add it to launch.ranks, or record all ranks of the job");
      }
      Member member;
      member.rank = rank;
      member.gpu = {entry->node(), entry->gpu()};
      member.env = environment_of(context_.launch, *entry);
      if (const auto [taken, free] = seats.emplace(member.gpu, rank); !free) {
        return fail(Code::kBadInput,
                    fmt::format("Duplicate GPU detected: ranks {} and {} both on node {} GPU {}",
                                taken->second, rank, entry->node(), entry->gpu()),
                    "communicator " + communicator_.id, "give every rank a GPU of its own");
      }
      const auto [at, fresh] = group_of.emplace(entry->node(), out_.groups.size());
      if (fresh) {
        out_.groups.emplace_back();
        out_.groups.back().node = entry->node();
      }
      out_.groups[at->second].members.push_back(static_cast<uint32_t>(out_.members.size()));
      out_.members.push_back(std::move(member));
    }
    return {};
  }

  [[nodiscard]] bool joined_by_nvlink() const {
    std::vector<platforms::LinkId> route;
    for (const LocalGroup& group : out_.groups) {
      for (size_t i = 1; i < group.members.size(); ++i) {
        route.clear();
        // With a switch all pairs are joined; a mesh is joined when neighbours are (graphs.cpp
        // orders them).
        bool any = false;
        for (size_t j = 0; j < group.members.size() && !any; ++j) {
          any = j != i && context_.links.nvlink(out_.members[group.members[i]].gpu,
                                                out_.members[group.members[j]].gpu, route);
        }
        if (!any) return false;
      }
    }
    return true;
  }

  [[nodiscard]] std::string offered_intra() const {
    return name_of(joined_by_nvlink() ? IntraTransport::kNvlink : default_pcie());
  }

  // Peer to peer over PCIe needs a common switch (NCCL's default level is PXB).
  [[nodiscard]] IntraTransport default_pcie() const {
    for (const LocalGroup& group : out_.groups) {
      for (size_t i = 1; i < group.members.size(); ++i) {
        const auto distance = context_.links.distance(out_.members[group.members[i - 1]].gpu,
                                                      out_.members[group.members[i]].gpu);
        if (distance > Links::Distance::kPxb) return IntraTransport::kHost;
      }
    }
    return IntraTransport::kPcie;
  }

  void inside() {
    const bool nvlink = joined_by_nvlink();
    out_.intra = nvlink ? IntraTransport::kNvlink : default_pcie();
    if (context_.launch.backend() != pb::NCCL) out_.intra = IntraTransport::kHost;
    for (const LocalGroup& group : out_.groups) {
      if (group.members.size() < 2) continue;
      std::vector<uint32_t> off;
      for (uint32_t m : group.members) {
        const std::string level = value_of(out_.members[m].env, "NCCL_P2P_LEVEL");
        if (switched_on(out_.members[m].env, "NCCL_P2P_DISABLE") || level == "LOC" ||
            level == "0") {
          off.push_back(out_.members[m].rank);
        }
      }
      if (off.empty()) continue;
      out_.fallbacks.push_back({group.node, off,
                                name_of(nvlink ? IntraTransport::kNvlink : default_pcie()),
                                name_of(IntraTransport::kHost),
                                "peer-to-peer is switched off on ranks " + format_ranks(off)});
      out_.intra = IntraTransport::kHost;
    }
  }

  [[nodiscard]] bool nvlink_between_nodes() const {
    std::vector<platforms::LinkId> route;
    return context_.links.nvlink(out_.members[out_.groups[0].members[0]].gpu,
                                 out_.members[out_.groups[1].members[0]].gpu, route);
  }

  void blame(const LocalGroup& group, InterTransport from, InterTransport to,
             const std::map<std::string, std::vector<uint32_t>>& why) {
    for (const auto& [reason, ranks] : why) {
      out_.fallbacks.push_back(
          {group.node, ranks, name_of(from), name_of(to),
           fmt::format("{} on node {} (ranks {})", reason,
                       context_.platform.nodes(static_cast<int>(group.node)).name(),
                       format_ranks(ranks))});
    }
  }

  Result<void> outside() {
    if (nvlink_between_nodes()) {
      out_.inter = InterTransport::kNvlink;
      out_.offered = name_of(out_.inter);
      return {};
    }
    InterTransport offered = InterTransport::kRdmaDirect;
    std::vector<std::map<std::string, std::vector<uint32_t>>> refused(out_.groups.size());
    bool rdma = true;
    for (size_t g = 0; g < out_.groups.size(); ++g) {
      const LocalGroup& group = out_.groups[g];
      const pb::Node& node = context_.platform.nodes(static_cast<int>(group.node));
      const bool has = std::any_of(node.nics().begin(), node.nics().end(), is_rdma);
      if (!has) offered = InterTransport::kSocket;
      for (uint32_t m : group.members) {
        const std::string why = rdma_refusal(node, out_.members[m].env);
        if (!why.empty()) refused[g][why].push_back(out_.members[m].rank);
      }
      rdma &= refused[g].empty();
    }
    if (context_.launch.backend() != pb::NCCL) rdma = false;
    for (LocalGroup& group : out_.groups) group.nics = near_nics(context_, out_, group, false);
    std::vector<std::map<std::string, std::vector<uint32_t>>> indirect(out_.groups.size());
    bool direct = rdma;
    for (size_t g = 0; rdma && g < out_.groups.size(); ++g) {
      LocalGroup& group = out_.groups[g];
      for (uint32_t m : group.members) {
        const uint32_t nic = nearest_nic(m, group.nics);
        const std::string why = direct_refusal(context_, out_.members[m], nic);
        if (!why.empty()) indirect[g][why].push_back(out_.members[m].rank);
      }
      direct &= indirect[g].empty();
    }
    out_.inter = direct ? InterTransport::kRdmaDirect
                 : rdma ? InterTransport::kRdma
                        : InterTransport::kSocket;
    out_.offered = name_of(offered);
    if (out_.inter == InterTransport::kSocket) {
      for (LocalGroup& group : out_.groups) {
        group.interface = choose_interface(context_.platform.nodes(static_cast<int>(group.node)),
                                           out_.members[group.members.front()].env);
        if (group.interface == UINT32_MAX) {
          return fail(Code::kBadInput, "no IP interface is usable for NCCL's sockets",
                      context_.platform.nodes(static_cast<int>(group.node)).name(),
                      "check NCCL_SOCKET_IFNAME and the node's interfaces");
        }
      }
      if (offered != InterTransport::kSocket) {
        for (size_t g = 0; g < refused.size(); ++g) {
          blame(out_.groups[g], offered, InterTransport::kSocket, refused[g]);
        }
      }
    } else if (out_.inter == InterTransport::kRdma) {
      for (size_t g = 0; g < indirect.size(); ++g) {
        blame(out_.groups[g], offered, InterTransport::kRdma, indirect[g]);
      }
    }
    return {};
  }

  [[nodiscard]] uint32_t nearest_nic(uint32_t member, const std::vector<uint32_t>& nics) const {
    uint32_t best = nics.front();
    for (uint32_t nic : nics) {
      if (context_.links.distance(out_.members[member].gpu, nic) <
          context_.links.distance(out_.members[member].gpu, best)) {
        best = nic;
      }
    }
    return best;
  }

  const ModelContext& context_;
  const traces::Communicator& communicator_;
  Placement out_;
};

}  // namespace

const char* name_of(IntraTransport transport) {
  switch (transport) {
    case IntraTransport::kNvlink:
      return "P2P/NVL";
    case IntraTransport::kPcie:
      return "P2P/PCIe";
    case IntraTransport::kHost:
      return "SHM";
  }
  return "SHM";
}

const char* name_of(InterTransport transport) {
  switch (transport) {
    case InterTransport::kNone:
      return "";
    case InterTransport::kNvlink:
      return "P2P/MNNVL";
    case InterTransport::kRdmaDirect:
      return "NET/IB/GDRDMA";
    case InterTransport::kRdma:
      return "NET/IB";
    case InterTransport::kSocket:
      return "NET/Socket";
  }
  return "";
}

Result<Placement> place(const ModelContext& context, const traces::Communicator& communicator) {
  if (communicator.members.empty()) {
    return fail(Code::kBadInput, "a communicator has no members", communicator.id);
  }
  return Placing(context, communicator).run();
}

}  // namespace rehearse::sim
