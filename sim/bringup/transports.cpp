// SPDX-License-Identifier: Apache-2.0
// What NCCL sets up between ranks once they know each other:
//
//   transport  queue pairs: a GID that is not routed ends ibv_modify_qp with 110, an entry that the partition table
//              does not have with 22; peer access over PCIe under an IOMMU never delivers (ACS alone only makes the
//              way longer, platforms/model/links.hpp)
//   buffers    segments in /dev/shm: 33,030,528 bytes for the pool of a rank's network proxy (ncclProxyOpsPool, size
//              as reported in nccl#1838) and 9,637,888 for each connection through host memory (nccl#342: buffers of
//              LL, LL128 and Simple and a page)
#include <fmt/format.h>

#include <algorithm>

#include "sim/bringup/states.hpp"
#include "sim/bringup/wires.hpp"
#include "sim/nccl/environment.hpp"
#include "sim/nccl/graphs.hpp"
#include "sim/nccl/placement.hpp"

namespace rehearse::sim::bringup {
namespace {

constexpr Bytes kProxyPool = 33'030'528;
constexpr Bytes kHostConnection = 9'637'888;
constexpr int kMostChannels = 32;

void gid(Wires& wires) {
  std::vector<std::pair<uint32_t, std::string>> blamed;
  for (size_t i = 0; wires.several_nodes() && i < wires.there().size(); ++i) {
    const size_t p = wires.there()[i];
    const int index = whole_number(wires.process(p).env, "NCCL_IB_GID_INDEX", -1);
    if (index < 0) continue;
    for (const pb::Nic* nic : wires.adapters(p)) {
      if (nic->kind() != pb::ROCE || nic->gid_index() == 0) continue;
      if (static_cast<uint32_t>(index) == nic->gid_index()) continue;
      Trouble trouble{.process = p, .state = "transport", .error = "gid"};
      trouble.since = trouble.gives_up = wires.process(p).clock;
      trouble.facts = {{"nic", nic->name()}, {"index", std::to_string(index)}};
      wires.job().add(std::move(trouble));
      blamed.emplace_back(wires.process(p).seat,
                          fmt::format("NCCL_IB_GID_INDEX={}: of {} GID {} is routed", index,
                                      nic->name(), nic->gid_index()));
      break;
    }
  }
  // A setting of the whole job is nobody's own.
  if (!blamed.empty() && blamed.size() == wires.there().size()) {
    return wires.job().blame("configuration", 0, blamed.front().second);
  }
  for (const auto& [rank, why] : blamed) wires.job().blame("rank", rank, why);
}

void never_delivers(Wires& wires, uint32_t rank, uint32_t node) {
  for (const size_t p : wires.there()) {
    if (wires.process(p).seat != rank) continue;
    Trouble trouble{.process = p, .state = "transport", .error = "iommu"};
    trouble.since = wires.process(p).clock;
    trouble.waits = true;
    wires.watch(p, trouble);
    wires.job().add(std::move(trouble));
  }
  wires.job().blame("node", node, "its IOMMU redirects what GPUs send to each other over PCIe");
}

void iommu(Wires& wires) {
  for (const uint32_t node : wires.nodes()) {
    if (!wires.job().node(node).iommu() || wires.world() == nullptr) continue;
    const Placement& placement = wires.world()->placement();
    for (const LocalGroup& group : placement.groups) {
      if (group.node != node) continue;
      for (size_t i = 0; i + 1 < group.members.size(); ++i) {
        const Member& a = placement.members[group.members[i]];
        const Member& b = placement.members[group.members[i + 1]];
        if (placement.between(a, b) == PairTransport::kPcie) never_delivers(wires, a.rank, node);
      }
    }
  }
}

// Connections through host memory by which each rank of a node receives, over rings and trees.
std::map<uint32_t, int> host_connections(Wires& wires, uint32_t node) {
  std::map<uint32_t, int> out;
  const Placement& placement = wires.world()->placement();
  const Graphs& graphs = wires.world()->graphs();
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

void fill_shared_memory(Wires& wires, uint32_t node, Bytes size) {
  const std::map<uint32_t, int> hops = host_connections(wires, node);
  Bytes used = 0;
  for (const size_t p : wires.there()) {
    if (wires.process(p).node != node) continue;
    std::vector<Bytes> segments;
    if (wires.world()->nodes() > 1) segments.push_back(kProxyPool);
    const auto received = hops.find(wires.process(p).seat);
    const int connections = received == hops.end() ? 0 : received->second;
    segments.insert(segments.end(), static_cast<size_t>(connections), kHostConnection);
    for (const Bytes segment : segments) {
      used += segment;
      if (used <= size) continue;
      Trouble trouble{.process = p, .state = "buffers", .error = "no-space"};
      trouble.since = trouble.gives_up = wires.process(p).clock;
      trouble.facts = {{"size", std::to_string(segment)}};
      wires.job().add(std::move(trouble));
      return wires.job().blame("node", node,
                               fmt::format("/dev/shm has {} bytes, the ranks up to {} need {}",
                                           size, wires.process(p).seat, used));
    }
  }
  for (const size_t p : wires.there()) {
    if (wires.process(p).node != node) continue;
    used += wires.job().launch.training().loader_shm();
    if (used <= size) continue;
    Trouble trouble{.process = p, .state = "buffers", .error = "loader"};
    trouble.since = trouble.gives_up = wires.process(p).clock;
    wires.job().add(std::move(trouble));
    return wires.job().blame(
        "node", node, fmt::format("/dev/shm has {} bytes, NCCL and loaders need {}", size, used));
  }
}

void shared_memory(Wires& wires) {
  std::map<uint32_t, Bytes> need;     // by node
  std::map<uint32_t, size_t> locals;  // processes of a node
  for (const size_t p : wires.there()) ++locals[wires.process(p).node];
  for (const uint32_t node : wires.nodes()) {
    // No ring or tree asks for more than this.
    const auto count = static_cast<Bytes>(locals[node]);
    const Bytes loader = wires.job().launch.training().loader_shm();
    const Bytes most = count * (kProxyPool + kHostConnection * 4 * kMostChannels + loader);
    const Bytes size = wires.job().node(node).shm();
    if (size <= 0 || size >= most || wires.world() == nullptr) continue;
    fill_shared_memory(wires, node, size);
  }
}

void partition_tables(Wires& wires) {
  for (const size_t p : wires.there()) {
    const pb::Nic* nic = wires.several_nodes() ? wires.adapter(p) : nullptr;
    if (nic == nullptr || nic->kind() != pb::INFINIBAND) continue;
    const int index = whole_number(wires.process(p).env, "NCCL_IB_PKEY", 0);
    if (index >= 0 && index < std::max(nic->pkeys_size(), 1)) continue;
    Trouble trouble{.process = p, .state = "transport", .error = "pkey"};
    trouble.since = trouble.gives_up = wires.process(p).clock;
    trouble.facts = {{"nic", nic->name()}};
    wires.job().add(std::move(trouble));
    wires.job().blame("rank", wires.process(p).seat,
                      fmt::format("NCCL_IB_PKEY={}: the partition table of {} has {} entries",
                                  index, nic->name(), std::max(nic->pkeys_size(), 1)));
  }
}

}  // namespace

void connect_transports(Job& job) {
  Wires wires(job);
  for (const auto state : {gid, iommu, shared_memory, partition_tables}) {
    state(wires);
    if (!job.troubles.empty()) return wires.rest_waits();
  }
}

}  // namespace rehearse::sim::bringup
