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

bool usable_rdma(const pb::Nic& nic, const std::map<std::string, std::string>& env) {
  return is_rdma(nic) && !nic.down() && name_allowed(nic.name(), value_of(env, "NCCL_IB_HCA"));
}

// What NCCL's sockets run over: IPoIB where there is one, else every interface but loopback and
// docker's bridges; with a filter every one that fits.
std::vector<uint32_t> usable_interfaces(const pb::Node& node,
                                        const std::map<std::string, std::string>& env) {
  constexpr size_t kMostInterfaces = 16;
  const std::string filter = value_of(env, "NCCL_SOCKET_IFNAME");
  std::vector<uint32_t> infiniband, others;
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
    const bool ib = filter.empty() && face.kind() == pb::IPOIB;
    (ib ? infiniband : others).push_back(static_cast<uint32_t>(i));
  }
  std::vector<uint32_t>& out = infiniband.empty() ? others : infiniband;
  if (out.size() > kMostInterfaces) out.resize(kMostInterfaces);
  return out;
}

// What two ranks of one node can do together.
TopologySettings weaker(TopologySettings a, const TopologySettings& b) {
  a.p2p_level = std::min(a.p2p_level, b.p2p_level);
  a.p2p_level_given |= b.p2p_level_given;
  a.gdr_level = std::min(a.gdr_level, b.gdr_level);
  a.shared_memory &= b.shared_memory;
  a.through_gpu &= b.through_gpu;
  a.pxn &= b.pxn;
  a.pxn_c2c &= b.pxn_c2c;
  a.gdr_c2c &= b.gdr_c2c;
  a.p2p_pxn_level = std::min(a.p2p_pxn_level, b.p2p_pxn_level);
  a.nvls = std::min(a.nvls, b.nvls);
  a.collnet &= b.collnet;
  a.multi_node_nvlink &= b.multi_node_nvlink;
  return a;
}

IntraTransport worst_of(PairTransport transport) {
  switch (transport) {
    case PairTransport::kNvlink:
    case PairTransport::kNvlinkVia:
      return IntraTransport::kNvlink;
    case PairTransport::kPcie:
      return IntraTransport::kPcie;
    case PairTransport::kHost:
      return IntraTransport::kHost;
  }
  return IntraTransport::kHost;
}

PairTransport transport_of(const NodeSystem& system, size_t a, size_t b) {
  if (!system.peer_to_peer(a, b)) return PairTransport::kHost;
  const PathType type = system.gpu_path(a, b).type;
  if (type <= PathType::kNvl) return PairTransport::kNvlink;
  return type == PathType::kNvb ? PairTransport::kNvlinkVia : PairTransport::kPcie;
}

// Each GPU's best neighbour, the worst of them: what joins the node.
IntraTransport joining(const NodeSystem& system) {
  IntraTransport worst = IntraTransport::kNvlink;
  for (size_t a = 0; a < system.gpus.size(); ++a) {
    IntraTransport best = IntraTransport::kHost;
    for (size_t b = 0; b < system.gpus.size(); ++b) {
      if (a != b) best = std::min(best, worst_of(transport_of(system, a, b)));
    }
    if (system.gpus.size() > 1) worst = std::max(worst, best);
  }
  return worst;
}

class Placing {
 public:
  Placing(const ModelContext& context, const traces::Communicator& communicator,
          NodeGraphCache& cache)
      : context_(context), communicator_(communicator), cache_(cache) {}

  Result<Placement> run() {
    if (auto seated = seat(); !seated) return tl::unexpected(seated.error());
    group();
    split();
    if (out_.groups.size() > 1) {
      if (auto between = outside(); !between) return tl::unexpected(between.error());
    }
    inside();
    return std::move(out_);
  }

 private:
  [[nodiscard]] const pb::Node& node(uint32_t index) const {
    return context_.platform.nodes(static_cast<int>(index));
  }

  Result<void> seat() {
    RH_TRY(const NcclVersion version, parse_nccl_version(context_.launch.nccl_version()));
    std::map<GpuRef, uint32_t> seats;
    std::map<std::map<std::string, std::string>, size_t> environments;
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
      if (auto ok = check_seat(*entry); !ok) return ok;
      if (const auto [taken, free] = seats.emplace(member.gpu, rank); !free) {
        return fail(Code::kBadInput,
                    fmt::format("Duplicate GPU detected: ranks {} and {} both on node {} GPU {}",
                                taken->second, rank, entry->node(), entry->gpu()),
                    "communicator " + communicator_.id, "give every rank a GPU of its own");
      }
      const auto [known, fresh] = environments.emplace(member.env, settings_.size());
      if (fresh) settings_.push_back(topology_settings(member.env, version, out_.notes));
      setting_of_.push_back(known->second);
      out_.members.push_back(std::move(member));
    }
    return {};
  }

  [[nodiscard]] Result<void> check_seat(const pb::RankLaunch& entry) const {
    const auto nodes = static_cast<uint32_t>(context_.platform.nodes_size());
    if (entry.node() >= nodes) {
      return fail(Code::kBadInput,
                  fmt::format("rank {} is on node {}: the platform has {}", entry.rank(),
                              entry.node(), nodes),
                  fmt::format("launch.ranks[{}].node", entry.rank()), "count nodes from 0");
    }
    const auto gpus = static_cast<uint32_t>(node(entry.node()).gpus_size());
    if (entry.gpu() < gpus) return {};
    return fail(Code::kBadInput,
                fmt::format("rank {} is on GPU {}: node {} has {}", entry.rank(), entry.gpu(),
                            entry.node(), gpus),
                fmt::format("launch.ranks[{}].gpu", entry.rank()), "count GPUs from 0");
  }

  // One group per node, or per NVLink domain where every rank may use it.
  void group() {
    bool domains = true;
    for (const TopologySettings& each : settings_) domains &= each.multi_node_nvlink;
    std::map<std::string, size_t> group_of;
    for (uint32_t m = 0; m < out_.members.size(); ++m) {
      const Member& member = out_.members[m];
      const pb::Node& host = node(member.gpu.node);
      const bool joined = domains && host.nvswitch().count() > 0 &&
                          host.gpus(static_cast<int>(member.gpu.gpu)).nvlink().links() > 0 &&
                          !host.nvswitch().domain().empty();
      const std::string key =
          joined ? "d" + host.nvswitch().domain() : fmt::format("n{}", member.gpu.node);
      const auto [at, fresh] = group_of.emplace(key, out_.groups.size());
      if (fresh) add_group();
      add_member(at->second, m);
    }
  }

  void add_group() { out_.groups.emplace_back(); }

  void add_member(size_t g, uint32_t m) {
    LocalGroup& group = out_.groups[g];
    const TopologySettings& own = settings_[setting_of_[m]];
    if (group.members.empty()) {
      group.node = out_.members[m].gpu.node;
      group.settings = own;
    } else {
      group.settings = weaker(group.settings, own);
    }
    group.members.push_back(m);
    out_.members[m].group = static_cast<uint32_t>(g);
  }

  [[nodiscard]] SystemScope scope_of(const LocalGroup& group) const {
    SystemScope scope;
    for (const uint32_t m : group.members) scope.gpus.push_back(out_.members[m].gpu);
    std::sort(scope.gpus.begin(), scope.gpus.end());
    return scope;
  }

  // Ranks that can neither reach each other's memory nor share host memory meet on the network.
  void split() {
    std::vector<LocalGroup> whole;
    whole.swap(out_.groups);
    for (const LocalGroup& group : whole) {
      if (group.settings.shared_memory || group.members.size() < 2) {
        add_group();
        for (const uint32_t m : group.members) add_member(out_.groups.size() - 1, m);
        continue;
      }
      const SystemScope scope = scope_of(group);
      const NodeSystem system(context_.platform, scope, group.settings);
      std::map<GpuRef, size_t> index;
      for (size_t i = 0; i < scope.gpus.size(); ++i) index[scope.gpus[i]] = i;
      std::map<size_t, size_t> part_of;  // of a GPU, by the part of its first peer
      for (const uint32_t m : group.members) {
        const size_t own = index[out_.members[m].gpu];
        size_t part = SIZE_MAX;
        for (const auto& [gpu, known] : part_of) {
          if (system.peer_to_peer(own, gpu) && system.peer_to_peer(gpu, own)) {
            part = std::min(part, known);
          }
        }
        if (part == SIZE_MAX) {
          part = out_.groups.size();
          add_group();
        }
        part_of[own] = part;
        add_member(part, m);
      }
    }
  }

  void search(LocalGroup& group, bool sockets) {
    SystemScope scope = scope_of(group);
    scope.sockets = sockets;
    std::set<uint32_t> hosts;
    for (const GpuRef& gpu : scope.gpus) hosts.insert(gpu.node);
    group.hosts.assign(hosts.begin(), hosts.end());
    if (out_.groups.size() > 1) {
      for (const uint32_t host : hosts) {
        for (const uint32_t net : nets_of(group, host, sockets)) scope.nets.push_back({host, net});
      }
    }
    group.graphs = cache_.find(scope, group.settings);
    group.by_gpu.resize(scope.gpus.size());
    for (const uint32_t m : group.members) {
      const auto at = std::lower_bound(scope.gpus.begin(), scope.gpus.end(), out_.members[m].gpu);
      out_.members[m].local = static_cast<uint32_t>(at - scope.gpus.begin());
      group.by_gpu[out_.members[m].local] = m;
    }
  }

  // Network devices of a host that every rank of the group there may use.
  [[nodiscard]] std::vector<uint32_t> nets_of(const LocalGroup& group, uint32_t host,
                                              bool sockets) const {
    std::vector<uint32_t> nets;
    bool first = true;
    for (const uint32_t m : group.members) {
      if (out_.members[m].gpu.node != host) continue;
      std::vector<uint32_t> own;
      if (sockets) {
        own = usable_interfaces(node(host), out_.members[m].env);
      } else {
        for (int n = 0; n < node(host).nics_size(); ++n) {
          if (usable_rdma(node(host).nics(n), out_.members[m].env)) {
            own.push_back(static_cast<uint32_t>(n));
          }
        }
      }
      if (first) {
        nets = own;
      } else {
        std::erase_if(
            nets, [&](uint32_t n) { return std::find(own.begin(), own.end(), n) == own.end(); });
      }
      first = false;
    }
    return nets;
  }

  // Transport inside nodes, and who keeps it from being better.
  void inside() {
    const bool nccl = context_.launch.backend() == pb::NCCL;
    out_.host_only = !nccl;
    out_.intra = IntraTransport::kNvlink;
    IntraTransport offered = IntraTransport::kNvlink;
    for (LocalGroup& group : out_.groups) {
      if (!group.graphs) search(group, false);
      if (group.members.size() < 2) continue;
      const IntraTransport now = nccl ? joining(group.system()) : IntraTransport::kHost;
      out_.intra = std::max(out_.intra, now);
      TopologySettings usual;
      usual.version = group.settings.version;
      IntraTransport best = now;
      if (!(group.settings == usual)) {
        best = joining(NodeSystem(context_.platform, scope_of(group), usual));
      }
      offered = std::max(offered, best);
      if (best >= now || !nccl) continue;
      std::vector<uint32_t> off;
      for (const uint32_t m : group.members) {
        if (settings_[setting_of_[m]].p2p_level < usual.p2p_level) {
          off.push_back(out_.members[m].rank);
        }
      }
      out_.fallbacks.push_back({group.node, off, name_of(best), name_of(now),
                                "peer-to-peer is switched off on ranks " + format_ranks(off)});
    }
    if (out_.groups.size() > 1) return;
    const bool several = out_.groups.front().hosts.size() > 1;
    if (several) out_.inter = InterTransport::kNvlink;
    out_.offered = several ? name_of(InterTransport::kNvlink) : name_of(offered);
  }

  void blame(const LocalGroup& group, InterTransport from, InterTransport to,
             const std::map<std::string, std::vector<uint32_t>>& why) {
    for (const auto& [reason, ranks] : why) {
      out_.fallbacks.push_back({group.node, ranks, name_of(from), name_of(to),
                                fmt::format("{} on node {} (ranks {})", reason,
                                            node(group.node).name(), format_ranks(ranks))});
    }
  }

  // Why GPUDirect RDMA does not work for a member; "" when it does.
  [[nodiscard]] std::string direct_refusal(const LocalGroup& group, const Member& member) const {
    const NodeSystem& system = group.system();
    const uint32_t net = system.local_net(member.local, 0);
    if (net == UINT32_MAX || system.gpu_direct(member.local, net)) return "";
    if (!system.nets[net].direct) return "GPUDirect RDMA is off on the adapter";
    const std::string level = value_of(member.env, "NCCL_NET_GDR_LEVEL");
    return level.empty() ? "the adapter is too far from the GPU" : "NCCL_NET_GDR_LEVEL=" + level;
  }

  using Reasons = std::vector<std::map<std::string, std::vector<uint32_t>>>;

  Result<void> outside() {
    InterTransport offered = InterTransport::kRdmaDirect;
    Reasons refused(out_.groups.size());
    bool rdma = true;
    for (size_t g = 0; g < out_.groups.size(); ++g) {
      const LocalGroup& group = out_.groups[g];
      const pb::Node& host = node(group.node);
      const bool has = std::any_of(host.nics().begin(), host.nics().end(), is_rdma);
      if (!has) offered = InterTransport::kSocket;
      for (uint32_t m : group.members) {
        const std::string why = rdma_refusal(node(out_.members[m].gpu.node), out_.members[m].env);
        if (!why.empty()) refused[g][why].push_back(out_.members[m].rank);
      }
      rdma &= refused[g].empty() && !nets_of(group, group.node, false).empty();
    }
    if (context_.launch.backend() != pb::NCCL) rdma = false;
    for (LocalGroup& group : out_.groups) {
      group.nics = nets_of(group, group.node, false);
      search(group, !rdma);
    }
    Reasons indirect(out_.groups.size());
    bool direct = rdma;
    for (size_t g = 0; rdma && g < out_.groups.size(); ++g) {
      for (uint32_t m : out_.groups[g].members) {
        const std::string why = direct_refusal(out_.groups[g], out_.members[m]);
        if (!why.empty()) indirect[g][why].push_back(out_.members[m].rank);
      }
      direct &= indirect[g].empty();
    }
    out_.inter = direct ? InterTransport::kRdmaDirect
                 : rdma ? InterTransport::kRdma
                        : InterTransport::kSocket;
    out_.offered = name_of(offered);
    if (out_.inter == InterTransport::kSocket) return sockets(offered, refused);
    if (out_.inter == InterTransport::kRdma) {
      for (size_t g = 0; g < indirect.size(); ++g) {
        blame(out_.groups[g], offered, InterTransport::kRdma, indirect[g]);
      }
    }
    return {};
  }

  Result<void> sockets(InterTransport offered, const Reasons& refused) {
    for (LocalGroup& group : out_.groups) {
      if (group.system().nets.empty()) {
        return fail(Code::kBadInput, "no IP interface is usable for NCCL's sockets",
                    node(group.node).name(), "check NCCL_SOCKET_IFNAME and the node's interfaces");
      }
      group.interface = group.system().nets.front().index;
    }
    if (offered == InterTransport::kSocket) return {};
    for (size_t g = 0; g < refused.size(); ++g) {
      blame(out_.groups[g], offered, InterTransport::kSocket, refused[g]);
    }
    return {};
  }

  const ModelContext& context_;
  const traces::Communicator& communicator_;
  NodeGraphCache& cache_;
  std::vector<TopologySettings> settings_;  // different ones
  std::vector<size_t> setting_of_;          // per member
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

PairTransport Placement::between(const Member& a, const Member& b) const {
  if (host_only) return PairTransport::kHost;
  return transport_of(groups[a.group].system(), a.local, b.local);
}

Result<Placement> place(const ModelContext& context, const traces::Communicator& communicator) {
  if (communicator.members.empty()) {
    return fail(Code::kBadInput, "a communicator has no members", communicator.id);
  }
  NodeGraphCache own(context.platform);
  return Placing(context, communicator, context.cache != nullptr ? *context.cache : own).run();
}

}  // namespace rehearse::sim
