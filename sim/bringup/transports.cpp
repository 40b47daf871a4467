// SPDX-License-Identifier: Apache-2.0
// What NCCL sets up between ranks once they know each other, and what only shows when the first data move:
//
//   transport         queue pairs: a GID that is not routed ends ibv_modify_qp with 110; peer access over PCIe under
//                     an IOMMU never delivers (ACS alone only makes the way longer, platforms/model/links.hpp)
//   buffers           segments in /dev/shm: 33,030,528 bytes for the pool of a rank's network proxy
//                     (ncclProxyOpsPool, size as reported in nccl#1838) and 9,637,888 for each connection through host
//                     memory (nccl#342: buffers of LL, LL128 and Simple and a page)
//   first-collective  packets of another partition, or larger than the other port takes, are lost until the retries
//                     are over; ranks that cut messages differently notice, ranks that chose differently wait
#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "sim/bringup/interfaces.hpp"
#include "sim/bringup/states.hpp"
#include "sim/nccl/environment.hpp"
#include "sim/nccl/graphs.hpp"
#include "sim/nccl/placement.hpp"
#include "sim/nccl/settings.hpp"
#include "sim/nccl/version.hpp"
#include "sim/timers/settings.hpp"

namespace rehearse::sim::bringup {
namespace {

constexpr Bytes kProxyPool = 33'030'528;
constexpr Bytes kHostConnection = 9'637'888;
constexpr int kMostChannels = 32;
constexpr uint32_t kDefaultPartition = 0xffff;
constexpr uint32_t kFullMember = 0x8000;

bool uses_rdma(const Process& process) {
  const std::string off = process.variable("NCCL_IB_DISABLE"), net = process.variable("NCCL_NET");
  return (off.empty() || off == "0") && net != "Socket" && net != "socket";
}

class Transports {
 public:
  explicit Transports(Job& job) : job_(job), there_(job.started()) {
    std::set<uint32_t> nodes;
    for (const size_t p : there_) nodes.insert(process(p).node);
    several_nodes_ = nodes.size() > 1;
    nodes_.assign(nodes.begin(), nodes.end());
  }

  void run() {
    const auto states = {&Transports::gid,        &Transports::iommu, &Transports::shared_memory,
                         &Transports::partitions, &Transports::mtu,   &Transports::settings};
    for (const auto state : states) {
      (this->*state)();
      if (!job_.troubles.empty()) return rest_waits();
    }
  }

 private:
  [[nodiscard]] Process& process(size_t p) { return job_.processes[p]; }

  // The adapters that a process may use for RDMA.
  [[nodiscard]] std::vector<const pb::Nic*> adapters(size_t p) {
    std::vector<const pb::Nic*> out;
    if (!uses_rdma(process(p))) return out;
    for (const pb::Nic& nic : job_.node(process(p).node).nics()) {
      const bool rdma = nic.kind() != pb::ETHERNET && nic.kind() != pb::NIC_KIND_UNSPECIFIED;
      if (rdma && !nic.down() && name_allowed(nic.name(), process(p).variable("NCCL_IB_HCA"))) {
        out.push_back(&nic);
      }
    }
    return out;
  }

  void gid() {
    std::vector<std::pair<uint32_t, std::string>> blamed;
    for (size_t i = 0; several_nodes_ && i < there_.size(); ++i) {
      const size_t p = there_[i];
      const int index = whole_number(process(p).env, "NCCL_IB_GID_INDEX", -1);
      if (index < 0) continue;
      for (const pb::Nic* nic : adapters(p)) {
        if (nic->kind() != pb::ROCE || nic->gid_index() == 0) continue;
        if (static_cast<uint32_t>(index) == nic->gid_index()) continue;
        Trouble trouble{.process = p, .state = "transport", .error = "gid"};
        trouble.since = trouble.gives_up = process(p).clock;
        trouble.facts = {{"nic", nic->name()}, {"index", std::to_string(index)}};
        job_.add(std::move(trouble));
        blamed.emplace_back(process(p).seat,
                            fmt::format("NCCL_IB_GID_INDEX={}: of {} GID {} is routed", index,
                                        nic->name(), nic->gid_index()));
        break;
      }
    }
    // A setting of the whole job is nobody's own.
    if (!blamed.empty() && blamed.size() == there_.size()) {
      return job_.blame("configuration", 0, blamed.front().second);
    }
    for (const auto& [rank, why] : blamed) job_.blame("rank", rank, why);
  }

  // Where the ranks of the job sit and how they are joined; asked for only where it matters.
  [[nodiscard]] const CommunicatorModel* world() {
    if (asked_) return world_ ? &*world_ : nullptr;
    asked_ = true;
    auto links = platforms::Links::build(job_.document.platform());
    if (!links) return nullptr;
    links_.emplace(std::move(*links));
    traces::Communicator all;
    all.id = "world";
    for (const size_t p : there_) all.members.push_back(process(p).seat);
    const ModelContext context{job_.document.platform(), *links_, job_.launch};
    auto model = CommunicatorModel::create(context, all);
    if (model) world_.emplace(std::move(*model));
    return world_ ? &*world_ : nullptr;
  }

  void iommu() {
    for (const uint32_t node : nodes_) {
      if (!job_.node(node).iommu() || world() == nullptr) continue;
      const Placement& placement = world()->placement();
      for (const LocalGroup& group : placement.groups) {
        if (group.node != node) continue;
        for (size_t i = 0; i + 1 < group.members.size(); ++i) {
          const Member& a = placement.members[group.members[i]];
          const Member& b = placement.members[group.members[i + 1]];
          if (placement.between(a, b) == PairTransport::kPcie) never_delivers(a.rank, node);
        }
      }
    }
  }

  void never_delivers(uint32_t rank, uint32_t node) {
    for (const size_t p : there_) {
      if (process(p).seat != rank) continue;
      Trouble trouble{.process = p, .state = "transport", .error = "iommu"};
      trouble.since = process(p).clock;
      trouble.waits = true;
      watch(p, trouble);
      job_.add(std::move(trouble));
    }
    job_.blame("node", node, "its IOMMU redirects what GPUs send to each other over PCIe");
  }

  // PyTorch's watchdog ends a call that does not end; others wait.
  void watch(size_t p, Trouble& trouble) {
    const TorchTimers torch = timers_of(job_.launch, process(p).env, job_.findings).torch;
    if (job_.launch.framework() != pb::PYTORCH || !torch.acts()) return;
    trouble.gives_up = process(p).clock + torch.timeout;
    trouble.facts["ms"] = std::to_string(torch.timeout / 1'000'000);
  }

  void shared_memory() {
    std::map<uint32_t, Bytes> need;     // by node
    std::map<uint32_t, size_t> locals;  // processes of a node
    for (const size_t p : there_) ++locals[process(p).node];
    for (const uint32_t node : nodes_) {
      // No ring or tree asks for more than this.
      const auto count = static_cast<Bytes>(locals[node]);
      const Bytes loader = job_.launch.training().loader_shm();
      const Bytes most = count * (kProxyPool + kHostConnection * 4 * kMostChannels + loader);
      const Bytes size = job_.node(node).shm();
      if (size <= 0 || size >= most || world() == nullptr) continue;
      fill_shared_memory(node, size);
    }
  }

  void fill_shared_memory(uint32_t node, Bytes size) {
    const std::map<uint32_t, int> hops = host_connections(node);
    Bytes used = 0;
    for (const size_t p : there_) {
      if (process(p).node != node) continue;
      std::vector<Bytes> segments;
      if (world()->nodes() > 1) segments.push_back(kProxyPool);
      const auto received = hops.find(process(p).seat);
      const int connections = received == hops.end() ? 0 : received->second;
      segments.insert(segments.end(), static_cast<size_t>(connections), kHostConnection);
      for (const Bytes segment : segments) {
        used += segment;
        if (used <= size) continue;
        Trouble trouble{.process = p, .state = "buffers", .error = "no-space"};
        trouble.since = trouble.gives_up = process(p).clock;
        trouble.facts = {{"size", std::to_string(segment)}};
        job_.add(std::move(trouble));
        return job_.blame("node", node,
                          fmt::format("/dev/shm has {} bytes, the ranks up to {} need {}", size,
                                      process(p).seat, used));
      }
    }
    for (const size_t p : there_) {
      if (process(p).node != node) continue;
      used += job_.launch.training().loader_shm();
      if (used <= size) continue;
      Trouble trouble{.process = p, .state = "buffers", .error = "loader"};
      trouble.since = trouble.gives_up = process(p).clock;
      job_.add(std::move(trouble));
      return job_.blame("node", node,
                        fmt::format("/dev/shm has {} bytes, NCCL and loaders need {}", size, used));
    }
  }

  // Connections through host memory by which each rank of a node receives, over rings and trees.
  [[nodiscard]] std::map<uint32_t, int> host_connections(uint32_t node) {
    std::map<uint32_t, int> out;
    const Placement& placement = world()->placement();
    const Graphs& graphs = world()->graphs();
    for (const auto* family : {&graphs.rings, &graphs.trees}) {
      for (const std::vector<NodePath>& channel : *family) {
        for (size_t g = 0; g < channel.size(); ++g) {
          if (placement.groups[g].node != node) continue;
          const std::vector<uint32_t>& path = channel[g].members;
          const bool closed = family == &graphs.rings && channel.size() == 1;
          for (size_t i = 0; i + (closed ? 0 : 1) < path.size(); ++i) {
            const Member& a = placement.members[path[i]];
            const Member& b = placement.members[path[(i + 1) % path.size()]];
            if (a.rank != b.rank && placement.between(a, b) == PairTransport::kHost) ++out[b.rank];
          }
        }
      }
    }
    return out;
  }

  // The adapter of a process among those it may use; it talks to those of the same place on other nodes.
  [[nodiscard]] const pb::Nic* adapter(size_t p) {
    const auto nics = adapters(p);
    return nics.empty() ? nullptr : nics[process(p).local % nics.size()];
  }

  // What a process sends never arrives: its queue pairs give up after their retries.
  void lose(size_t p) {
    const NetworkTimers network = timers_of(job_.launch, process(p).env, job_.findings).network;
    Trouble trouble{.process = p, .state = "first-collective", .error = "lost"};
    trouble.since = process(p).clock;
    if (network.ib_total() > 0) trouble.gives_up = process(p).clock + network.ib_total();
    trouble.waits = trouble.gives_up == kNever;
    job_.add(std::move(trouble));
  }

  // The partition key by which a process talks; nothing without InfiniBand. An entry that the table does not have
  // is refused when the queue pair is made.
  [[nodiscard]] std::optional<uint32_t> partition(size_t p) {
    const pb::Nic* nic = adapter(p);
    if (nic == nullptr || nic->kind() != pb::INFINIBAND) return {};
    const int index = whole_number(process(p).env, "NCCL_IB_PKEY", 0);
    if (index == 0 && nic->pkeys().empty()) return kDefaultPartition;
    if (index >= 0 && index < nic->pkeys_size()) return nic->pkeys(index);
    Trouble trouble{.process = p, .state = "transport", .error = "pkey"};
    trouble.since = trouble.gives_up = process(p).clock;
    trouble.facts = {{"nic", nic->name()}};
    job_.add(std::move(trouble));
    job_.blame("rank", process(p).seat,
               fmt::format("NCCL_IB_PKEY={}: the partition table of {} has {} entries", index,
                           nic->name(), std::max(nic->pkeys_size(), 1)));
    return {};
  }

  void partitions() {
    if (!several_nodes_) return;
    std::map<size_t, uint32_t> keys;                          // by process
    std::map<uint32_t, std::map<uint32_t, size_t>> in_place;  // by local rank: how many have a key
    for (const size_t p : there_) {
      if (const auto key = partition(p)) {
        keys[p] = *key;
        ++in_place[process(p).local][*key];
      }
    }
    if (!job_.troubles.empty()) return;
    std::set<uint32_t> blamed;  // nodes
    for (const auto& [p, key] : keys) {
      const auto& peers = in_place[process(p).local];
      const uint32_t mine = key;
      const bool reached = std::all_of(peers.begin(), peers.end(), [&](const auto& other) {
        return talk(mine, other.first) || (other.first == mine && other.second == 1);
      });
      if (reached) continue;
      lose(p);
      const auto usual =
          std::max_element(peers.begin(), peers.end(), [](const auto& a, const auto& b) {
            // Among equals a full member is the one that is right, then the default partition.
            return std::tuple(a.second, a.first & kFullMember, a.first) <
                   std::tuple(b.second, b.first & kFullMember, b.first);
          });
      if (key == usual->first && peers.size() > 1) continue;
      if (!blamed.insert(process(p).node).second) continue;
      job_.blame(
          "node", process(p).node,
          peers.size() == 1
              ? fmt::format("its ports are limited members of partition {:#06x}, like their peers",
                            key)
              : fmt::format("its ports are in partition {:#06x}, their peers in {:#06x}", key,
                            usual->first));
    }
  }

  static bool talk(uint32_t a, uint32_t b) {
    return ((a ^ b) & ~kFullMember) == 0 && ((a | b) & kFullMember) != 0;
  }

  // Up to 2.19 NCCL agreed on the smaller of two MTUs; since then each side takes its own.
  void mtu() {
    const auto version = parse_nccl_version(job_.launch.nccl_version());
    if (!several_nodes_ || !version || *version < NcclVersion{2, 20, 0}) return;
    const auto own = [&](size_t p) {
      const pb::Nic* nic = adapter(p);
      return nic == nullptr ? 0u : nic->mtu();
    };
    std::map<uint32_t, uint32_t> smallest;
    for (const size_t p : there_) {
      if (own(p) == 0) continue;
      const auto [at, fresh] = smallest.emplace(process(p).local, own(p));
      if (!fresh) at->second = std::min(at->second, own(p));
    }
    for (const size_t p : there_) {
      const uint32_t mine = own(p);
      if (mine == 0 || mine == smallest[process(p).local]) continue;
      lose(p);
    }
    if (job_.troubles.empty()) return;
    for (const size_t p : there_) {
      if (job_.in_trouble(p) || own(p) == 0) continue;
      job_.blame(
          "node", process(p).node,
          fmt::format("its ports take packets of {} bytes, others send larger ones", own(p)));
    }
  }

  // Variables that decide how a message is cut or which way it goes; NCCL takes them to be equal.
  void settings() {
    if (there_.size() < 2) return;
    for (const char* name : {"NCCL_BUFFSIZE", "NCCL_ALGO", "NCCL_PROTO"}) {
      std::map<std::string, std::vector<size_t>> by_value;
      for (const size_t p : there_) by_value[process(p).variable(name)].push_back(p);
      if (by_value.size() < 2) continue;
      const auto usual =
          std::max_element(by_value.begin(), by_value.end(), [&](const auto& a, const auto& b) {
            // Among equals the ranks without the setting are the ones that are right.
            return std::pair(a.second.size(), a.first.empty()) <
                   std::pair(b.second.size(), b.first.empty());
          });
      std::set<uint32_t> blamed;
      for (const auto& [value, ranks] : by_value) {
        if (value == usual->first) continue;
        for (const size_t p : ranks) {
          if (!blamed.insert(process(p).node).second) continue;
          job_.blame("node", process(p).node,
                     fmt::format("{}={} there, {} elsewhere", name, value.empty() ? "unset" : value,
                                 usual->first.empty() ? "unset" : usual->first));
        }
      }
      if (name == std::string_view("NCCL_BUFFSIZE")) {
        cut_differently();
      } else {
        choose_differently();
      }
      return;
    }
  }

  [[nodiscard]] int64_t step_bytes(size_t p) {
    const auto settings = parse_settings(process(p).env);
    return settings ? settings->step_bytes(Protocol::kSimple) : 0;
  }

  // A rank that receives more than it has room for reports it; where it has more room nobody notices.
  void cut_differently() {
    for (size_t i = 0; i < there_.size(); ++i) {
      const size_t from = there_[i], to = there_[(i + 1) % there_.size()];
      const int64_t sent = step_bytes(from), room = step_bytes(to);
      if (process(from).node == process(to).node || sent <= room) continue;
      const bool rdma = !adapters(to).empty();
      Trouble trouble{.process = to, .state = "first-collective", .error = ""};
      trouble.error = rdma ? "size-rdma" : "size-socket";
      trouble.since = trouble.gives_up = process(to).clock;
      const auto own = nccl_interface(job_.network, job_.document.platform(), process(from).node,
                                      process(from).env);
      trouble.facts = {
          {"local", std::to_string(room)},
          {"remote", std::to_string(sent)},
          {"peer", own ? own->address : ""},
          {"port", std::to_string(ephemeral_port(job_.node(process(from).node), from))}};
      job_.add(std::move(trouble));
    }
    if (job_.troubles.empty()) choose_differently();
  }

  void choose_differently() {
    for (const size_t p : there_) {
      Trouble trouble{.process = p, .state = "first-collective", .error = "disagree"};
      trouble.since = process(p).clock;
      trouble.waits = true;
      watch(p, trouble);
      job_.add(std::move(trouble));
    }
  }

  // The others are inside their first call.
  void rest_waits() {
    std::vector<uint32_t> failed;
    for (const Trouble& trouble : job_.troubles) failed.push_back(process(trouble.process).seat);
    if (failed.size() > 64) failed.resize(64);
    const std::string state = job_.troubles.front().state;
    for (const size_t p : there_) {
      Trouble trouble{.process = p, .state = state, .error = "peers"};
      trouble.since = process(p).clock;
      trouble.waits = true;
      trouble.for_ranks = failed;
      if (state == "first-collective") watch(p, trouble);
      job_.add(std::move(trouble));
    }
  }

  Job& job_;
  std::vector<size_t> there_;
  std::vector<uint32_t> nodes_;
  bool several_nodes_ = false;
  bool asked_ = false;
  std::optional<platforms::Links> links_;
  std::optional<CommunicatorModel> world_;
};

}  // namespace

void connect_transports(Job& job) { Transports(job).run(); }

}  // namespace rehearse::sim::bringup
