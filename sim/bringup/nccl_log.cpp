// SPDX-License-Identifier: Apache-2.0
#include "sim/bringup/nccl_log.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"
#include "sim/bringup/bringup.hpp"
#include "sim/bringup/interfaces.hpp"
#include "sim/bringup/job.hpp"
#include "sim/nccl/graphs.hpp"
#include "sim/nccl/model.hpp"
#include "sim/nccl/node_graphs.hpp"
#include "sim/nccl/pairs.hpp"
#include "sim/nccl/version.hpp"

namespace rehearse::sim::bringup {
namespace {

// FNV-1a: the same number for the same text everywhere.
uint64_t number_of(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

// The text of one process.
class Page {
 public:
  Page(const Job& job, size_t index)
      : process_(job.processes[index]),
        prefix_(fmt::format("{}:{}:{} [{}] NCCL ", job.node(process_.node).name(),
                            1000 + process_.local, 1000 + process_.local, process_.ordinal)) {}

  void info(const std::string& text) { text_ += prefix_ + "INFO " + text + "\n"; }
  // Lines of an error text that NCCL prints.
  void failure(const std::string& text) {
    for (const std::string& line : split(text, '\n')) {
      if (line.starts_with("NCCL ")) text_ += prefix_ + line.substr(5) + "\n";
    }
  }
  void plain(const std::string& text) { text_ += text + "\n"; }
  [[nodiscard]] std::string take() { return std::move(text_); }
  [[nodiscard]] const Process& process() const { return process_; }

 private:
  const Process& process_;
  std::string prefix_;
  std::string text_;
};

void prologue(const Job& job, const std::optional<ChosenInterface>& own, Page& page) {
  const auto version = parse_nccl_version(job.launch.nccl_version());
  const bool spaced = version && *version < NcclVersion{2, 24, 0};
  for (const auto& [name, value] : page.process().env) {
    if (name.starts_with("NCCL_"))
      page.info(fmt::format("{} set by environment to {}.", name, value));
  }
  if (own) {
    page.info(
        fmt::format("Bootstrap{}: Using {}:{}<0>", spaced ? " " : "", own->name, own->address));
  }
  if (page.process().rank == 0) page.plain("NCCL version " + job.launch.nccl_version());
}

// "[0]mlx5_0:1/IB [1]mlx5_1:1/IB ", or the interfaces of NET/Socket.
void network_lines(const Job& job, const Placement& placement, const Member& member,
                   const std::optional<ChosenInterface>& own, Page& page) {
  const LocalGroup& group = placement.groups[member.group];
  const auto& nets = group.system().nets;
  const pb::Node& node = job.node(member.gpu.node);
  std::string list;
  const bool sockets = placement.inter == InterTransport::kSocket;
  for (size_t i = 0; i < nets.size(); ++i) {
    const auto index = static_cast<int>(nets[i].index);
    if (sockets) {
      const pb::Interface& face = node.interfaces(index);
      const std::string address = face.addresses().empty() ? "" : face.addresses(0);
      list += fmt::format("[{}]{}:{}<0> ", i, face.name(), address.substr(0, address.find('/')));
    } else {
      const pb::Nic& nic = node.nics(index);
      list += fmt::format("[{}]{}:1/{} ", i, nic.name(), nic.kind() == pb::ROCE ? "RoCE" : "IB");
    }
  }
  if (sockets) {
    page.info("NET/Socket : Using " + list);
    page.info("Using network Socket");
    return;
  }
  page.info(fmt::format("NET/IB : Using {}; OOB {}:{}<0>", list, own ? own->name : "",
                        own ? own->address : ""));
  for (size_t i = 0; i < nets.size(); ++i) {
    const pb::Nic& nic = node.nics(static_cast<int>(nets[i].index));
    page.info(fmt::format("NET/IB : GPU Direct RDMA {} for HCA {} '{}'",
                          nic.gpudirect() ? "Enabled" : "Disabled", i, nic.name()));
  }
  page.info("Using network IB");
}

// One communicator as its members log it.
class CommunicatorLog {
 public:
  CommunicatorLog(const Job& job, const ModelContext& context, const CommunicatorModel& model,
                  const std::string& id)
      : job_(job),
        model_(model),
        placement_(model.placement()),
        graphs_(model.graphs()),
        channels_(model.nccl().shape.n_channels),
        id_(number_of(id)) {
    const PairContext pairs{context, placement_, graphs_, model.nccl(), model.parameters()};
    const auto layout = p2p_layout(p2p_shape(pairs), model.nccl().settings);
    if (layout) pair_channels_ = *layout;
    for (int c = 0; c < channels_; ++c) {
      rings_.push_back(ring_of(c));
      parents_.push_back(tree_parents(placement_, graphs_, c));
    }
  }

  void write(uint32_t m, const std::optional<ChosenInterface>& own, Page& page) const {
    const Member& member = placement_.members[m];
    if (placement_.groups.size() > 1) network_lines(job_, placement_, member, own, page);
    const std::string who = describe(m, page.process());
    page.info(fmt::format("ncclCommInitRank {} - Init START", who));
    const LocalGroup& group = placement_.groups[member.group];
    const auto local =
        std::find(group.members.begin(), group.members.end(), m) - group.members.begin();
    page.info(fmt::format("comm {} rank {} nRanks {} nNodes {} localRanks {} localRank {} MNNVL 0",
                          pointer(m), m, placement_.members.size(), placement_.groups.size(),
                          group.members.size(), local));
    if (m == 0) {
      for (int c = 0; c < channels_; ++c) {
        page.info(fmt::format("Channel {:02}/{:02} : {}", c, channels_,
                              fmt::join(rings_[static_cast<size_t>(c)], " ")));
      }
    }
    page.info(trees(m));
    for (int c = 0; c < channels_; ++c) ring_connections(c, m, page);
    page.info("Connected all rings");
    for (int c = 0; c < channels_; ++c) tree_connections(c, m, page);
    page.info("Connected all trees");
    page.info(fmt::format(
        "{} coll channels, {} collnet channels, {} nvls channels, {} p2p channels, "
        "{} p2p channels per peer",
        channels_, model_.nccl().shape.collnet ? channels_ : 0, model_.nccl().shape.nvls_channels,
        pair_channels_.channels, pair_channels_.channels_per_peer));
    page.info(fmt::format("ncclCommInitRank {} - Init COMPLETE", who));
  }

 private:
  [[nodiscard]] std::vector<uint32_t> ring_of(int channel) const {
    std::vector<uint32_t> out;
    for (const NodePath& path : paths(graphs_.rings, channel)) {
      out.insert(out.end(), path.members.begin(), path.members.end());
    }
    // NCCL begins each ring with rank 0.
    std::rotate(out.begin(), std::find(out.begin(), out.end(), 0u), out.end());
    return out;
  }
  [[nodiscard]] static const std::vector<NodePath>& paths(
      const std::vector<std::vector<NodePath>>& of, int channel) {
    return of[static_cast<size_t>(channel) % of.size()];
  }
  [[nodiscard]] std::string pointer(uint32_t m) const {
    return fmt::format("0x{:x}", 0x7f0000000000 + (id_ & 0xffff) * 0x100000 + uint64_t{m} * 0x1000);
  }
  [[nodiscard]] std::string describe(uint32_t m, const Process& process) const {
    const GpuRef& gpu = placement_.members[m].gpu;
    const pb::Gpu& device = job_.node(gpu.node).gpus(static_cast<int>(gpu.gpu));
    return fmt::format("comm {} rank {} nranks {} cudaDev {} nvmlDev {} busId {} commId 0x{:x}",
                       pointer(m), m, placement_.members.size(), process.ordinal, gpu.gpu,
                       bus_number(device, gpu.gpu), id_);
  }

  [[nodiscard]] std::string trees(uint32_t m) const {
    std::string out = "Trees";
    for (int c = 0; c < channels_; ++c) {
      const std::vector<int>& parent = parents_[static_cast<size_t>(c)];
      std::vector<int> down;
      for (size_t other = 0; other < parent.size(); ++other) {
        if (parent[other] == static_cast<int>(m)) down.push_back(static_cast<int>(other));
      }
      down.resize(3, -1);
      out += fmt::format(" [{}] {}/{}/{}->{}->{}", c, down[0], down[1], down[2], m, parent[m]);
    }
    return out;
  }

  void ring_connections(int c, uint32_t m, Page& page) const {
    const std::vector<uint32_t>& ring = rings_[static_cast<size_t>(c)];
    if (ring.size() < 2) return;
    const auto at = static_cast<size_t>(std::find(ring.begin(), ring.end(), m) - ring.begin());
    const uint32_t before = ring[(at + ring.size() - 1) % ring.size()];
    const uint32_t after = ring[(at + 1) % ring.size()];
    const NodePath& own = paths(graphs_.rings, c)[placement_.members[m].group];
    connection(c, before, m, {m, own.nic}, page);
    connection(c, m, after, {m, own.nic_out}, page);
  }

  void tree_connections(int c, uint32_t m, Page& page) const {
    const std::vector<int>& parent = parents_[static_cast<size_t>(c)];
    const NodePath& own = paths(graphs_.trees, c)[placement_.members[m].group];
    const auto both = [&](uint32_t other) {
      connection(c, other, m, {m, own.nic}, page);
      connection(c, m, other, {m, own.nic}, page);
    };
    for (size_t other = 0; other < parent.size(); ++other) {
      if (parent[other] == static_cast<int>(m)) both(static_cast<uint32_t>(other));
    }
    if (parent[m] >= 0) both(static_cast<uint32_t>(parent[m]));
  }

  // Who writes a line, and by which network device the connection goes there.
  struct Side {
    uint32_t member = 0;
    uint32_t net = 0;
  };

  void connection(int c, uint32_t from, uint32_t to, Side side, Page& page) const {
    const Member &a = placement_.members[from], &b = placement_.members[to];
    const std::string ends =
        fmt::format("Channel {:02}/0 : {}[{}] -> {}[{}]", c, from, a.gpu.gpu, to, b.gpu.gpu);
    if (a.group != b.group) {
      const char* direction = side.member == to ? "receive" : "send";
      return page.info(fmt::format("{} [{}] via {}", ends, direction, network(side)));
    }
    // The sender writes it.
    if (side.member == from) page.info(ends + " via " + inside(a, b));
  }

  [[nodiscard]] std::string network(const Side& side) const {
    const Member& member = placement_.members[side.member];
    const NodeSystem& system = placement_.groups[member.group].system();
    if (placement_.inter == InterTransport::kSocket) return fmt::format("NET/Socket/{}", side.net);
    const bool direct = side.net < system.nets.size() && system.gpu_direct(member.local, side.net);
    return fmt::format("NET/IB/{}{}", side.net, direct ? "/GDRDMA" : "");
  }

  [[nodiscard]] std::string inside(const Member& a, const Member& b) const {
    switch (placement_.between(a, b)) {
      case PairTransport::kHost:
        return "SHM/direct/direct";
      case PairTransport::kNvlinkVia: {
        const LocalGroup& group = placement_.groups[a.group];
        const uint32_t via = group.system().gpu_path(a.local, b.local).via;
        if (via >= group.by_gpu.size()) return "P2P/IPC";
        const uint32_t through = group.by_gpu[via];
        return fmt::format("P2P/indirect/{}[{}]", through, placement_.members[through].gpu.gpu);
      }
      case PairTransport::kNvlink:
      case PairTransport::kPcie:
        break;
    }
    return a.gpu.node == b.gpu.node ? "P2P/IPC" : "P2P/MNNVL";
  }

  const Job& job_;
  const CommunicatorModel& model_;
  const Placement& placement_;
  const Graphs& graphs_;
  int channels_ = 0;
  uint64_t id_ = 0;
  P2pLayout pair_channels_;
  std::vector<std::vector<uint32_t>> rings_;
  std::vector<std::vector<int>> parents_;
};

bool before_nccl(const std::string& state) {
  constexpr const char* kStates[] = {"launch", "device", "lookup", "bind", "connect", "join"};
  return std::find(std::begin(kStates), std::end(kStates), state) != std::end(kStates);
}

}  // namespace

Result<std::vector<RankLog>> nccl_logs(const Scenario& written) {
  std::vector<RankLog> out;
  if (written.document.launch().backend() != pb::NCCL) return out;
  RH_TRY(const CameUp up, bring_up(written));
  pb::Scenario document = written.document;
  for (const auto& [entry, gpu] : up.moved) {
    document.mutable_launch()->mutable_ranks(entry)->set_gpu(gpu);
  }
  const Job job(document, 0);
  std::map<uint32_t, Page> pages;
  std::map<uint32_t, std::optional<ChosenInterface>> own;
  for (const size_t p : job.started()) {
    const Process& process = job.processes[p];
    Page& page = pages.emplace(process.seat, Page(job, p)).first->second;
    own[process.seat] = nccl_interface(job.network, document.platform(), process.node, process.env);
    if (up.failed && before_nccl(up.outcome.bring_up().failed_in())) continue;
    prologue(job, own[process.seat], page);
  }
  if (up.failed) {
    for (const pb::RankBringUp& rank : up.outcome.bring_up().ranks()) {
      const auto page = pages.find(rank.rank());
      if (page != pages.end()) page->second.failure(rank.text());
    }
  } else if (!up.alone) {
    RH_TRY(const platforms::Links links, platforms::Links::build(document.platform()));
    NodeGraphCache cache(document.platform());
    const ModelContext context{document.platform(), links, document.launch(), &cache};
    for (const traces::Communicator& communicator : written.trace->communicators) {
      // "nccl", "cpu:gloo,cuda:nccl", or not said.
      const bool nccl =
          communicator.backend.empty() || communicator.backend.find("nccl") != std::string::npos;
      if (communicator.members.size() < 2 || !nccl) continue;
      RH_TRY(const CommunicatorModel model, CommunicatorModel::create(context, communicator));
      const CommunicatorLog log(job, context, model, communicator.id);
      for (uint32_t m = 0; m < communicator.members.size(); ++m) {
        const auto page = pages.find(communicator.members[m]);
        if (page != pages.end()) log.write(m, own[communicator.members[m]], page->second);
      }
    }
  }
  for (auto& [rank, page] : pages) out.push_back({rank, page.take()});
  return out;
}

}  // namespace rehearse::sim::bringup
