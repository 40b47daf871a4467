// SPDX-License-Identifier: Apache-2.0
#include "sim/nccl/timing.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "sim/efficiency.hpp"
#include "sim/nccl/graphs.hpp"
#include "sim/nccl/rounding.hpp"

namespace rehearse::sim {
namespace {

// Physics does not change with the version of NCCL: its latest measured latencies time all.
const Constants& measured() {
  static const VersionedConstants constants = constants_for(NcclVersion{2, 28, 9});
  return constants.constants;
}

// Priors, µs. Through host memory a flag crosses PCIe twice, once as a read that polls; staging
// without GPUDirect adds a copy on each side; a socket adds the kernel's stack on each side.
constexpr double kHostFactor = 2;
constexpr double kStagedUs = 6;
constexpr double kSocketUs = 20;

// A TCP connection is bound by the processor core that copies for it: about 20 Gbit/s (a typical
// figure for one stream with a large MTU; calibrate to replace it).
constexpr BytesPerSec kTcpStream = 2.5e9;

// A queue pair of an InfiniBand or RoCE adapter carries about 160 Gbit/s of a ring's messages: a prior with tables in
// view. On ten nodes with 1, 2 or 4 of 8 H100 and as many 400 Gbit/s ports, four channels share a port and reach 97 % of
// it; with all 8 two do, and 16 channels move 316 to 324 GB/s.
constexpr BytesPerSec kQueuePair = 20e9;

// NCCL's figures of one channel of a tree are of its graphs' channels, each of which runs as two (NCCL model §7.4): B200
// moves 335 and 191 to 195 GB/s in trees over 2 and 4 to 62 nodes with 16 channels, which is 8 of 42.8 and 24 GB/s
// (validation/figures/held_out, its reports).
constexpr double kCopies = 2;

// Send and recv: bytes that half a block moves per clock, and the time one chunk costs beside its
// bytes. Priors: an SM copies some 12 bytes per clock and direction, a flag takes about 3 µs.
constexpr double kPairBytesPerClock = 12;
constexpr double kPairChunkUs = 3;

Hardware hardware_of(HopKind kind) {
  switch (kind) {
    case HopKind::kNvlink:
      return Hardware::kNvlink;
    case HopKind::kPcie:
    case HopKind::kHost:
      return Hardware::kPci;
    case HopKind::kRdmaDirect:
    case HopKind::kRdmaStagedSend:
    case HopKind::kRdma:
    case HopKind::kSocket:
      return Hardware::kNet;
  }
  return Hardware::kNet;
}

struct Passes {
  int64_t inside = 0;   // hops inside nodes on the longest way
  int64_t between = 0;  // hops between nodes
};

Passes passes_of(const CommShape& shape, Function function, Algorithm algorithm) {
  const int nodes = shape.n_nodes;
  const int others = shape.n_ranks / nodes - 1;
  const int depth = floor_log2(nodes);
  switch (algorithm) {
    case Algorithm::kRing: {
      if (function == Function::kBroadcast || function == Function::kReduce) {
        return {shape.n_ranks - nodes, nodes - 1};
      }
      const int rounds = function == Function::kAllReduce ? 2 : 1;
      const int between = nodes > 1 ? rounds * (nodes - 1) : 0;
      return {rounds * (shape.n_ranks - 1) - between, between};
    }
    case Algorithm::kTree:
      return {2 * others, 2 * depth};
    case Algorithm::kCollnetDirect:
      return {2 * std::min(1, others), 1};
    case Algorithm::kCollnetChain:
      return {2 * others, 1};
    case Algorithm::kNvls:
      return {1, nodes > 1 ? 1 : 0};
    case Algorithm::kNvlsTree:
      return {1, 2 * depth};
    case Algorithm::kPat:
      return {0, floor_log2(std::max(1, shape.n_ranks - 1)) + 1};
  }
  return {};
}

}  // namespace

HopKind hop_inside(const Placement& placement) {
  switch (placement.intra) {
    case IntraTransport::kNvlink:
      return HopKind::kNvlink;
    case IntraTransport::kPcie:
      return HopKind::kPcie;
    case IntraTransport::kHost:
      return HopKind::kHost;
  }
  return HopKind::kHost;
}

HopKind hop_between(const Placement& placement) {
  switch (placement.inter) {
    case InterTransport::kNvlink:
      return HopKind::kNvlink;
    case InterTransport::kRdmaDirect:
      return placement.staged_sends ? HopKind::kRdmaStagedSend : HopKind::kRdmaDirect;
    case InterTransport::kRdma:
      return HopKind::kRdma;
    case InterTransport::kNone:
    case InterTransport::kSocket:
      return HopKind::kSocket;
  }
  return HopKind::kSocket;
}

const char* name_of(HopKind kind) {
  switch (kind) {
    case HopKind::kNvlink:
      return "NVLink";
    case HopKind::kPcie:
      return "PCIe";
    case HopKind::kHost:
      return "host memory";
    case HopKind::kRdmaDirect:
      return "RDMA with GPUDirect";
    case HopKind::kRdmaStagedSend:
      return "RDMA with GPUDirect, sent through host memory";
    case HopKind::kRdma:
      return "RDMA through host memory";
    case HopKind::kSocket:
      return "sockets";
  }
  return "sockets";
}

double hop_latency_us(HopKind kind, Algorithm algorithm, Protocol protocol) {
  const auto& table = measured().hardware_latency[index_of(hardware_of(kind))];
  double us = table[index_of(algorithm)][index_of(protocol)];
  if (us == 0) us = table[index_of(Algorithm::kRing)][index_of(protocol)];
  if (kind == HopKind::kHost) us *= kHostFactor;
  if (kind == HopKind::kRdma) us += kStagedUs;
  if (kind == HopKind::kRdmaStagedSend) us += kStagedUs / 2;
  if (kind == HopKind::kSocket) us += kSocketUs;
  return us;
}

double base_latency_us(Protocol protocol) {
  return measured().base_latency[index_of(Algorithm::kRing)][index_of(protocol)];
}

std::vector<LatencyPart> pass_latency(const Timing& timing, Function function, const Choice& choice,
                                      TimeTerms& terms) {
  const Algorithm algorithm = choice.algorithm;
  const Protocol protocol = choice.protocol;
  terms.protocol = protocol;
  // Every kernel starts alike; NCCL counts the start of in-switch reduction into its one hop.
  terms.start_us = is_nvls(algorithm) ? 0 : base_latency_us(protocol);
  const Passes passes = passes_of(timing.model.shape, function, algorithm);
  std::vector<LatencyPart> parts;
  parts.push_back({"start of the kernel", 1, terms.start_us + timing.parameters.launch_us});
  const auto add = [&](const char* what, HopKind kind, int64_t hops) {
    if (hops == 0) return;
    const double us = hop_latency_us(kind, algorithm, protocol);
    // A stream of rooted calls is pipelined: a rank goes on when its own part is done.
    const bool rooted = function == Function::kBroadcast || function == Function::kReduce;
    terms.hops_us[index_of(kind)] += us * (rooted ? 1.0 : static_cast<double>(hops));
    parts.push_back({std::string(what) + name_of(kind), hops,
                     us * timing.parameters.hop[index_of(kind)][index_of(protocol)]});
  };
  if (timing.parameters.channel_start_us > 0 && timing.channels > 1) {
    parts.push_back({"further channels", timing.channels - 1, timing.parameters.channel_start_us});
  }
  terms.further_channels = std::max(0, timing.channels - 1);
  terms.issue_channels_us =
      timing.model.version.constants.issue_channel_us * static_cast<double>(timing.channels);
  add("hops over ", hop_inside(timing.placement), passes.inside);
  add("hops between nodes by ", hop_between(timing.placement), passes.between);
  return parts;
}

LatencyPart loop_latency(const Timing& timing, const DecidedCall& decided, const ChunkPlan& chunks,
                         const ChannelPace& pace, TimeTerms& terms) {
  LatencyPart part{"waits of later loops that slices do not hide", 0, 0};
  const Choice& choice = decided.plan.choice;
  if (choice.algorithm != Algorithm::kRing || chunks.loops < 2 || pace.rate <= 0) return part;
  const Passes passes = passes_of(timing.model.shape, decided.asked.function, choice.algorithm);
  const double slice_us = static_cast<double>(chunks.slice_bytes) / pace.rate * 1e6;
  terms.loops = chunks.loops;
  terms.slice_share = pace.bytes > 0 ? static_cast<double>(chunks.slice_bytes) / pace.bytes : 0;
  double waits = 0;
  const auto add = [&](HopKind kind, int64_t hops) {
    if (hops == 0) return;
    const double us = hop_latency_us(kind, choice.algorithm, choice.protocol);
    terms.loop_hop_us[index_of(kind)] = us;
    terms.loop_hops[index_of(kind)] += static_cast<double>(hops);
    const double multiple = timing.parameters.hop[index_of(kind)][index_of(choice.protocol)];
    waits += std::max(0.0, us * multiple - slice_us) * static_cast<double>(hops);
  };
  add(hop_inside(timing.placement), passes.inside);
  add(hop_between(timing.placement), passes.between);
  if (waits <= 0) return part;
  part.count = chunks.loops - 1;
  part.each_us = waits;
  return part;
}

Nanos sum_of(const std::vector<LatencyPart>& parts) {
  double us = 0;
  for (const LatencyPart& part : parts) us += static_cast<double>(part.count) * part.each_us;
  return static_cast<Nanos>(std::nearbyint(us * 1000));
}

BytesPerSec rate_alone(const ModelContext& context, const FlowLoad& flow) {
  std::map<LinkId, double> weight;
  for (const LinkWeight& use : flow.links) weight[use.link] += use.weight;
  double rate = flow.cap > 0 ? flow.cap : std::numeric_limits<double>::infinity();
  for (const auto& [link, w] : weight) {
    rate = std::min(rate, effective_capacity(context.platform, context.links[link]) / w);
  }
  return std::isinf(rate) ? 0 : rate;
}

double wire_factor(Protocol protocol) {
  switch (protocol) {
    case Protocol::kLl:
      return 2.0;
    case Protocol::kLl128:
      return 1 / 0.92;
    case Protocol::kSimple:
      return 1.0;
  }
  return 1.0;
}

BytesPerSec channel_limit(const NcclModel& model, Algorithm algorithm, Protocol protocol,
                          int channels) {
  const CommShape& shape = model.shape;
  const auto arch = index_of(arch_of(shape.cc_min));
  const std::size_t scale = scale_of(shape.n_nodes);
  const Constants& c = measured();
  if (protocol == Protocol::kLl) {
    // NCCL's figure is of the channels that it takes by itself; further blocks move more.
    const int own = static_cast<int>(kCopies) * graph_of(shape, algorithm).n_channels;
    const double all = c.ll_max[arch][0] * 1e9 / std::max(1, std::min(channels, std::max(1, own)));
    return algorithm == Algorithm::kTree ? all / 2 : all;
  }
  switch (algorithm) {
    case Algorithm::kRing:
      return c.ring_ll128_per_channel[arch][scale] * 1e9;
    case Algorithm::kTree:
    case Algorithm::kCollnetChain: {
      // NCCL halves it: a tree passes each byte up and down. What NCCL states for more than two nodes is of GPUs that
      // gather from two others: no node of three has two children, nor one whose parent is the switch.
      const bool branches = algorithm == Algorithm::kTree && shape.n_nodes > 3;
      const std::size_t of = branches ? scale : std::min<std::size_t>(scale, 1);
      return (protocol == Protocol::kLl128 ? c.tree_ll128_per_channel
                                           : c.tree_per_channel)[arch][of] *
             1e9 / 2 / kCopies;
    }
    case Algorithm::kNvlsTree: {
      const double bus = c.nvls_tree_per_channel[arch][scale] * 1e9 *
                         std::max(1, graph_of(shape, algorithm).n_channels);
      const double ranks = shape.n_ranks;
      return bus * ranks / (2 * std::max(1.0, ranks - 1)) / std::max(1, channels);
    }
    default:
      return 0;
  }
}

BytesPerSec pair_channel_limit(double clock_hz, int64_t chunk_bytes) {
  const auto chunk = static_cast<double>(std::max<int64_t>(1, chunk_bytes));
  const double clock = clock_hz > 0 ? clock_hz : 1.5e9;
  return chunk / (kPairChunkUs * 1e-6 + chunk / (kPairBytesPerClock * clock));
}

BytesPerSec host_memory_link(const ModelContext& context, const Placement& placement,
                             const Graphs& graphs) {
  double slowest = 0;
  std::vector<LinkId> route;
  const auto look = [&](uint32_t from, uint32_t to) {
    const Member& a = placement.members[from];
    const Member& b = placement.members[to];
    if (a.group != b.group || placement.between(a, b) != PairTransport::kHost) return;
    route.clear();
    context.links.gpu_to_host(a.gpu, route);
    if (route.empty()) return;
    const double own = context.links[route.front()].capacity;
    slowest = slowest == 0 ? own : std::min(slowest, own);
  };
  for (const std::vector<NodePath>& ring : graphs.rings) {
    for (const NodePath& path : ring) {
      for (size_t i = 1; i < path.members.size(); ++i) look(path.members[i - 1], path.members[i]);
      if (ring.size() == 1 && path.members.size() > 1) {
        look(path.members.back(), path.members.front());
      }
    }
  }
  return slowest;
}

BytesPerSec staging_link(const ModelContext& context, const Placement& placement,
                         const Graphs& graphs, Algorithm algorithm, int channels) {
  const auto staged = [&](uint32_t member, uint32_t net, Direction direction) {
    const Member& own = placement.members[member];
    const NodeSystem& system = placement.groups[own.group].system();
    if (net >= system.nets.size()) return true;
    return direction == Direction::kSend ? !system.gpu_direct_send(own.local, net)
                                         : !system.gpu_direct(own.local, net);
  };
  const auto posts = posts_of(graphs, algorithm, channels, staged);
  double slowest = 0;
  std::vector<LinkId> route;
  for (const auto& [member, own] : posts) {
    route.clear();
    context.links.gpu_to_host(placement.members[member].gpu, route);
    if (route.empty()) continue;
    const double rate = context.links[route.front()].capacity / std::max(own.sends, own.receives);
    slowest = slowest == 0 ? rate : std::min(slowest, rate);
  }
  return slowest;
}

void limit_by_network(const ModelContext& context, const Placement& placement,
                      std::vector<FlowLoad>& flows) {
  const bool rdma =
      placement.inter == InterTransport::kRdmaDirect || placement.inter == InterTransport::kRdma;
  if (!rdma) return;
  double share = 1;
  for (const Member& member : placement.members) {
    const pb::Node& node = context.platform.nodes(static_cast<int>(member.gpu.node));
    const auto& nics = placement.groups[member.group].nics;
    const pb::NicKind kind =
        nics.empty() ? pb::INFINIBAND : node.nics(static_cast<int>(nics.front())).kind();
    share = std::min(share, class_share(context.platform.fabric(), kind, member.network));
    share = std::min(share, ordering_share(node, kind, member.network));
  }
  if (share >= 1) return;
  for (FlowLoad& flow : flows) {
    FlowLoad outside;
    for (const LinkWeight& use : flow.links) {
      const platforms::LinkKind kind = context.links[use.link].kind;
      if (kind != platforms::LinkKind::kNic && kind != platforms::LinkKind::kSwitch) continue;
      outside.links.push_back(use);
    }
    const BytesPerSec most = rate_alone(context, outside) * share;
    if (most > 0) flow.cap = flow.cap > 0 ? std::min(flow.cap, most) : most;
  }
}

BytesPerSec direct_limit(const ModelContext& context, const std::vector<LinkWeight>& links,
                         const CommShape& shape) {
  // As NCCL counts it (§3.2): every byte once up and once down, own slices too, and from Hopper on .85 of that.
  double slowest = 0;
  for (const LinkWeight& use : links) {
    if (context.links[use.link].kind != platforms::LinkKind::kNvlink) continue;
    const double own = effective_capacity(context.platform, context.links[use.link]);
    slowest = slowest == 0 ? own : std::min(slowest, own);
  }
  return slowest / 2 * (shape.cc_min >= 90 ? .85 : 1) / std::max(1, shape.collnet_heads);
}

PostedBy posted_by(const ModelContext& context, const Placement& placement) {
  for (const Member& member : placement.members) {
    const auto& nics = placement.groups[member.group].nics;
    if (nics.empty()) continue;
    const pb::Node& node = context.platform.nodes(static_cast<int>(member.gpu.node));
    const pb::NicKind kind = node.nics(static_cast<int>(nics.front())).kind();
    if (kind == pb::EFA || kind == pb::SLINGSHOT) return PostedBy::kLibfabric;
  }
  return PostedBy::kVerbs;
}

BytesPerSec connection_limit(const ModelContext& context, const Placement& placement) {
  const bool rdma =
      placement.inter == InterTransport::kRdmaDirect || placement.inter == InterTransport::kRdma;
  BytesPerSec least = 0;
  for (const Member& member : placement.members) {
    const auto& nics = placement.groups[member.group].nics;
    if (!rdma || nics.empty()) return 0;
    const pb::Node& node = context.platform.nodes(static_cast<int>(member.gpu.node));
    const pb::NicKind kind = node.nics(static_cast<int>(nics.front())).kind();
    if (kind != pb::INFINIBAND && kind != pb::ROCE) return 0;
    const BytesPerSec own = kQueuePair * std::max(1U, member.network.queue_pairs);
    least = least > 0 ? std::min(least, own) : own;
  }
  return least;
}

BytesPerSec socket_limit(const Member& member, double connections) {
  if (member.network.socket_threads > 0) return kTcpStream * member.network.sockets;
  return kTcpStream / std::max(1.0, connections);
}

}  // namespace rehearse::sim
