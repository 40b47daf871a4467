// SPDX-License-Identifier: Apache-2.0
#include "sim/nccl/placement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/text.hpp"
#include "sim/nccl/environment.hpp"
#include "sim/nccl/networks.hpp"
#include "sim/scenario/environment.hpp"

namespace rehearse::sim {
namespace {

const pb::RankLaunch* find_rank(const pb::Launch& launch, uint32_t rank) {
  const auto at = std::lower_bound(
      launch.ranks().begin(), launch.ranks().end(), rank,
      [](const pb::RankLaunch& entry, uint32_t wanted) { return entry.rank() < wanted; });
  return at != launch.ranks().end() && at->rank() == rank ? &*at : nullptr;
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
                    "record all ranks of the job, let `rehearse import --assume-symmetric` clone "
                    "those that are missing, or add it to launch.ranks");
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
      if (context_.launch.backend() == pb::NCCL) {
        if (auto ok = check_network(node(entry->node()), member.env, rank); !ok) return ok;
      }
      const auto [known, fresh] = environments.emplace(member.env, settings_.size());
      if (fresh) {
        settings_.push_back(topology_settings(member.env, version, out_.notes));
        settings_.back().files = files_of(member.env);
      }
      if (auto ok = cache_.read(entry->node(), settings_[known->second].files, out_.files); !ok) {
        return ok;
      }
      std::vector<std::string> repeated;  // of an environment that was read before
      member.network =
          network_settings(member.env, node(entry->node()), fresh ? out_.notes : repeated);
      setting_of_.push_back(known->second);
      out_.members.push_back(std::move(member));
    }
    return {};
  }

  [[nodiscard]] const pb::LaunchFile* find_file(const std::string& path) const {
    for (const pb::LaunchFile& file : context_.launch.files()) {
      if (file.path() == path) return &file;
    }
    return nullptr;
  }

  // The files that a rank reads. NCCL takes that of NVIDIA's topology daemon where no variable names
  // one, and goes on without one that is not there.
  uint32_t files_of(const std::map<std::string, std::string>& env) {
    constexpr const char* kDaemon = "/var/run/nvidia-topologyd/virtualTopology.xml";
    const auto named = [&](const char* name, const char* otherwise) -> const pb::LaunchFile* {
      const std::string path = variable_in(env, name);
      const pb::LaunchFile* file = find_file(path.empty() ? otherwise : path);
      if (file == nullptr && !path.empty()) {
        out_.notes.push_back(fmt::format(
            "{}={} is not one of launch.files and taken as not being there", name, path));
      }
      return file;
    };
    (void)named("NCCL_CONF_FILE", "");  // its variables are in the environment
    const pb::LaunchFile* topology = named("NCCL_TOPO_FILE", kDaemon);
    return cache_.know(topology, named("NCCL_GRAPH_FILE", ""));
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

  // Ranks that can neither reach each other's memory nor share host memory meet on the network, as do
  // those whose adapters are nearer and faster than their GPUs' way to each other.
  void split() {
    std::vector<LocalGroup> whole;
    whole.swap(out_.groups);
    for (const LocalGroup& group : whole) {
      const bool faster_outside = group.settings.net_inside_node && !switched(group);
      if (group.members.size() < 2 || (group.settings.shared_memory && !faster_outside)) {
        add_group();
        for (const uint32_t m : group.members) add_member(out_.groups.size() - 1, m);
        continue;
      }
      SystemScope scope = scope_of(group);
      if (faster_outside) add_nets(group, scope);
      const std::shared_ptr<const NodeSystem> system = cache_.look(scope, group.settings);
      const auto joined = [&](size_t a, size_t b) {
        const bool near = group.settings.shared_memory ||
                          (system->peer_to_peer(a, b) && system->peer_to_peer(b, a));
        return near && !(faster_outside && system->network_faster(a, b));
      };
      std::map<GpuRef, size_t> index;
      for (size_t i = 0; i < scope.gpus.size(); ++i) index[scope.gpus[i]] = i;
      std::map<size_t, size_t> part_of;  // of a GPU, by the part of its first peer
      for (const uint32_t m : group.members) {
        const size_t own = index[out_.members[m].gpu];
        size_t part = SIZE_MAX;
        for (const auto& [gpu, known] : part_of) {
          if (joined(own, gpu)) part = std::min(part, known);
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

  // No network is faster than NVLink through a switch.
  [[nodiscard]] bool switched(const LocalGroup& group) const {
    return std::all_of(group.members.begin(), group.members.end(), [&](uint32_t m) {
      const GpuRef at = out_.members[m].gpu;
      return node(at.node).nvswitch().count() > 0 &&
             node(at.node).gpus(static_cast<int>(at.gpu)).nvlink().links() > 0;
    });
  }

  // The RDMA adapters that every rank of the group may use; none when one of them cannot.
  void add_nets(const LocalGroup& group, SystemScope& scope) const {
    if (context_.launch.backend() != pb::NCCL) return;
    std::set<uint32_t> hosts;
    for (const uint32_t m : group.members) {
      const Member& member = out_.members[m];
      if (!rdma_refusal(node(member.gpu.node), member.env).empty()) return;
      hosts.insert(member.gpu.node);
    }
    for (const uint32_t host : hosts) {
      for (const uint32_t net : nets_of(group, host, false)) scope.nets.push_back({host, net});
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
        own = usable_adapters(node(host), out_.members[m].env);
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
      out_.fallbacks.push_back(
          {group.node, off, name_of(best), name_of(now),
           off.empty() ? "the file of NCCL_TOPO_FILE keeps GPUs apart"
                       : fmt::format("peer-to-peer is switched off on {} {}",
                                     off.size() == 1 ? "rank" : "ranks", format_ranks(off))});
    }
    if (out_.groups.size() > 1) return;
    const bool several = out_.groups.front().hosts.size() > 1;
    if (several) out_.inter = InterTransport::kNvlink;
    out_.offered = several ? name_of(InterTransport::kNvlink) : name_of(offered);
  }

  void blame(const LocalGroup& group, InterTransport from, InterTransport to,
             const std::map<std::string, std::vector<uint32_t>>& why) {
    for (const auto& [reason, ranks] : why) {
      out_.fallbacks.push_back(
          {group.node, ranks, name_of(from), name_of(to),
           fmt::format("{} on node {} ({} {})", reason, node(group.node).name(),
                       ranks.size() == 1 ? "rank" : "ranks", format_ranks(ranks))});
    }
  }

  // Why GPUDirect RDMA does not work for a member; "" when it does.
  [[nodiscard]] std::string direct_refusal(const LocalGroup& group, const Member& member) const {
    const NodeSystem& system = group.system();
    const uint32_t net = system.local_net(member.local, 0);
    if (net == UINT32_MAX || system.gpu_direct(member.local, net)) return "";
    if (!system.nets[net].direct) {
      return group.settings.dma_buffers ? "GPUDirect RDMA is off on the adapter"
                                        : "GPUDirect RDMA is off (NCCL_DMABUF_ENABLE=0)";
    }
    const auto level = member.env.find("NCCL_NET_GDR_LEVEL");
    return level == member.env.end() ? "the adapter is too far from the GPU"
                                     : "NCCL_NET_GDR_LEVEL=" + level->second;
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
      for (uint32_t m : out_.groups[g].members) {
        const NodeSystem& system = out_.groups[g].system();
        const uint32_t net = system.local_net(out_.members[m].local, 0);
        out_.staged_sends |= net != UINT32_MAX && system.gpu_direct(out_.members[m].local, net) &&
                             !system.gpu_direct_send(out_.members[m].local, net);
      }
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
