// SPDX-License-Identifier: Apache-2.0
#include "sim/nccl/traffic.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/text.hpp"
#include "sim/nccl/environment.hpp"
#include "sim/nccl/graphs.hpp"
#include "sim/nccl/loads.hpp"
#include "sim/nccl/model.hpp"
#include "sim/nccl/placement.hpp"
#include "sim/nccl/plan.hpp"

namespace rehearse::sim {
namespace {

using traces::Collective;

// Bytes on the wire per byte of payload: LL carries 8 of 16, LL128 120 of 128 (NCCL model §6.2).
double wire_factor(Protocol protocol) {
  switch (protocol) {
    case Protocol::kLl:
      return 2.0;
    case Protocol::kLl128:
      return 128.0 / 120.0;
    case Protocol::kSimple:
      return 1.0;
  }
  return 1.0;
}

DataType data_type(traces::DType dtype) {
  switch (dtype) {
    case traces::DType::kInt8:
    case traces::DType::kBool:
      return DataType::kInt8;
    case traces::DType::kUint8:
      return DataType::kUint8;
    case traces::DType::kInt32:
      return DataType::kInt32;
    case traces::DType::kUint32:
      return DataType::kUint32;
    case traces::DType::kInt64:
      return DataType::kInt64;
    case traces::DType::kUint64:
      return DataType::kUint64;
    case traces::DType::kFp16:
      return DataType::kFloat16;
    case traces::DType::kBf16:
      return DataType::kBfloat16;
    case traces::DType::kFp64:
      return DataType::kFloat64;
    case traces::DType::kFp8:
      return DataType::kFloat8e4m3;
    case traces::DType::kFp32:
    case traces::DType::kUnknown:
      return DataType::kFloat32;
  }
  return DataType::kFloat32;
}

ReduceOp reduce_op(traces::Reduction reduction) {
  switch (reduction) {
    case traces::Reduction::kAverage:
      return ReduceOp::kAvg;
    case traces::Reduction::kMin:
      return ReduceOp::kMin;
    case traces::Reduction::kMax:
      return ReduceOp::kMax;
    case traces::Reduction::kProduct:
      return ReduceOp::kProd;
    case traces::Reduction::kNone:
    case traces::Reduction::kSum:
      return ReduceOp::kSum;
  }
  return ReduceOp::kSum;
}

// A TCP connection is bound by the processor core that copies for it: about 20 Gbit/s (a typical
// figure for one stream with a large MTU; calibrate to replace it).
constexpr BytesPerSec kTcpStream = 2.5e9;

// A TCP round trip costs tens of microseconds more than RDMA; a typical figure, not a measurement.
constexpr double kSocketLatencyUs = 20;

// A variable of NCCL that differs between ranks is a fault of its own: some shape the rings, which
// every rank computes for itself.
void note_differences(const Placement& placement, const std::string& id, Findings& findings) {
  const auto& first = placement.members.front();
  std::map<std::string, std::vector<uint32_t>> differ;
  const auto look = [&](const auto& env, const auto& other, uint32_t rank) {
    for (const auto& [name, value] : env) {
      if (!name.starts_with("NCCL_") || name.starts_with("NCCL_DEBUG")) continue;
      const auto at = other.find(name);
      if (at != other.end() && at->second == value) continue;
      std::vector<uint32_t>& ranks = differ[name];
      if (ranks.empty() || ranks.back() != rank) ranks.push_back(rank);
    }
  };
  for (const Member& member : placement.members) {
    if (member.env == first.env) continue;
    look(member.env, first.env, member.rank);
    look(first.env, member.env, member.rank);
  }
  for (const auto& [name, ranks] : differ) {
    findings.add("nccl-environment-differs", Severity::kWarning,
                 fmt::format("communicator {}: {} on ranks {} is not that of rank {}", id, name,
                             format_ranks(ranks), first.rank),
                 "export the same NCCL variables on every rank", ranks.size());
  }
}

// In-switch reduction does not reach the rate of plain copies; NCCL counts with the same factors.
double nvls_efficiency(int compute_capability) { return compute_capability >= 100 ? .74 : .85; }

// The collective as NCCL is asked for it; counts are per rank for all-gather and reduce-scatter.
Call nccl_call(const traces::Call& call) {
  Call out;
  out.type = data_type(call.dtype);
  out.op = reduce_op(call.reduction);
  Bytes bytes = std::max(call.bytes_in, call.bytes_out);
  switch (call.collective) {
    case Collective::kAllGather:
      out.function = Function::kAllGather;
      bytes = call.bytes_in;
      break;
    case Collective::kReduceScatter:
      out.function = Function::kReduceScatter;
      bytes = call.bytes_out;
      break;
    case Collective::kBroadcast:
      out.function = Function::kBroadcast;
      break;
    case Collective::kReduce:
      out.function = Function::kReduce;
      break;
    case Collective::kBarrier:
      bytes = std::max<Bytes>(bytes, 4);  // the framework sends one element
      [[fallthrough]];
    default:
      out.function = Function::kAllReduce;
  }
  out.count = std::max<int64_t>(1, bytes / size_of(out.type));
  return out;
}

}  // namespace

struct CommunicatorModel::Impl {
  const ModelContext context;
  Placement placement;
  Graphs graphs;
  NcclModel model;   // decides
  NcclModel timing;  // latencies with those of the wire
  std::string transport;
  Findings findings;

  [[nodiscard]] Result<CallTraffic> collective(const traces::Call& call) const;
  [[nodiscard]] Result<CallTraffic> pairs(const traces::Call& call, uint32_t member) const;
  [[nodiscard]] Nanos pair_latency(bool between_nodes) const;
  // What one channel between nodes can carry, whatever the links offer; 0: no limit.
  [[nodiscard]] BytesPerSec channel_cap() const;
};

CommunicatorModel::CommunicatorModel(std::unique_ptr<const Impl> impl) : impl_(std::move(impl)) {}
CommunicatorModel::CommunicatorModel(CommunicatorModel&&) noexcept = default;
CommunicatorModel& CommunicatorModel::operator=(CommunicatorModel&&) noexcept = default;
CommunicatorModel::~CommunicatorModel() = default;

Result<CommunicatorModel> CommunicatorModel::create(const ModelContext& context,
                                                    const traces::Communicator& communicator) {
  RH_TRY(Placement placement, place(context, communicator));
  RH_TRY(Graphs graphs, build_graphs(context, placement));
  RH_TRY(Settings settings, parse_settings(placement.members.front().env));
  RH_TRY(NcclVersion version, parse_nccl_version(context.launch.nccl_version()));
  RH_TRY(NcclModel model, make_nccl_model(graphs.shape, settings, version));
  // NCCL's socket plugin reports no latency, so it decides without one; the wire has one.
  CommShape on_wire = graphs.shape;
  if (placement.inter == InterTransport::kSocket) {
    on_wire.ring.latency_inter_us = on_wire.tree.latency_inter_us = kSocketLatencyUs;
    on_wire.nvls.latency_inter_us = kSocketLatencyUs;
  }
  RH_TRY(NcclModel timing, make_nccl_model(on_wire, settings, version));
  std::string transport = placement.inter != InterTransport::kNone ? name_of(placement.inter)
                                                                   : name_of(placement.intra);
  Findings findings;
  for (const std::string& note : placement.notes) {
    findings.add("nccl-setting", Severity::kWarning, note, "correct or unset the variable");
  }
  note_differences(placement, communicator.id, findings);
  if (graphs.searched_as) {
    findings.add("nccl-search-version", Severity::kInfo, context.launch.nccl_version(),
                 "rings and channels follow the search of NCCL 2.28; older ones had other speed "
                 "classes");
  }
  if (!model.version.exact) {
    findings.add("nccl-version", Severity::kInfo, context.launch.nccl_version(),
                 "constants of the nearest known NCCL version are used");
  }
  for (const std::string& note : settings.notes) {
    findings.add("nccl-setting", Severity::kWarning, note, "correct or unset the variable");
  }
  return CommunicatorModel(std::make_unique<const Impl>(
      Impl{context, std::move(placement), std::move(graphs), std::move(model), std::move(timing),
           std::move(transport), std::move(findings)}));
}

const std::string& CommunicatorModel::transport() const { return impl_->transport; }
const std::string& CommunicatorModel::offered() const { return impl_->placement.offered; }
uint32_t CommunicatorModel::nodes() const {
  std::set<uint32_t> hosts;
  for (const Member& member : impl_->placement.members) hosts.insert(member.gpu.node);
  return static_cast<uint32_t>(hosts.size());
}
const std::vector<Fallback>& CommunicatorModel::fallbacks() const {
  return impl_->placement.fallbacks;
}
const Findings& CommunicatorModel::findings() const { return impl_->findings; }

Result<CallTraffic> CommunicatorModel::traffic(const traces::Call& call, uint32_t member) const {
  if (impl_->placement.members.size() < 2) return CallTraffic{0, {}, "local", 0, 0};
  switch (call.collective) {
    case Collective::kAllToAll:
    case Collective::kGather:
    case Collective::kScatter:
    case Collective::kSend:
    case Collective::kRecv:
      return impl_->pairs(call, member);
    default:
      return impl_->collective(call);
  }
}

Result<CallTraffic> CommunicatorModel::Impl::collective(const traces::Call& call) const {
  const Call asked = nccl_call(call);
  RH_TRY(PlannedCall plan, plan_call(model, asked));
  const int channels = std::max(1, plan.split.n_channels());
  const auto ranks = static_cast<double>(placement.members.size());
  const auto total =
      static_cast<double>(total_bytes(asked, static_cast<int>(placement.members.size())));
  const double per_channel = total / channels * wire_factor(plan.choice.protocol);
  const bool reduce_all = asked.function == Function::kAllReduce;
  const bool rooted = asked.function == Function::kBroadcast || asked.function == Function::kReduce;
  const Loads loads(context, placement, graphs);

  CallTraffic out;
  out.channels = channels;
  out.algorithm =
      fmt::format("{}/{}", name_of(plan.choice.algorithm), name_of(plan.choice.protocol));
  out.bus_bytes = total * (reduce_all ? 2 : 1) * (rooted ? 1.0 : (ranks - 1) / ranks);
  const Cost& cost = timing.table.at({asked.function, plan.choice.algorithm, plan.choice.protocol});
  out.latency = static_cast<Nanos>(std::nearbyint(static_cast<double>(cost.latency_us) * 1000));
  switch (plan.choice.algorithm) {
    case Algorithm::kTree:
    case Algorithm::kCollnetDirect:
    case Algorithm::kCollnetChain:
      out.flows.push_back({loads.trees(channels), per_channel, channel_cap()});
      break;
    case Algorithm::kRing:
    case Algorithm::kPat: {
      const double share = rooted ? 1.0 : (ranks - 1) / ranks * (reduce_all ? 2 : 1);
      out.flows.push_back({loads.rings(channels), per_channel * share, channel_cap()});
      break;
    }
    case Algorithm::kNvls:
    case Algorithm::kNvlsTree: {
      // In-switch reduction: what each of n GPUs sends is reduced on the way (n parts out, one in),
      // the result is multicast (one part out, n in). A part is 1/n of the data.
      const auto n = static_cast<uint32_t>(graphs.shape.ranks_per_node);
      const bool up = asked.function != Function::kAllGather;
      const bool down = asked.function != Function::kReduceScatter;
      const uint32_t sent = (up ? n : 0) + (down ? 1 : 0), received = (up ? 1 : 0) + (down ? n : 0);
      out.flows.push_back(
          {loads.nvls(sent, received), total / n / nvls_efficiency(graphs.shape.cc_min), 0});
      if (placement.groups.size() > 1) {
        out.flows.push_back({loads.node_trees(channels), per_channel, channel_cap()});
      }
      break;
    }
  }
  return out;
}

BytesPerSec CommunicatorModel::Impl::channel_cap() const {
  if (placement.groups.size() < 2 || placement.inter != InterTransport::kSocket) return 0;
  const auto& env = placement.members.front().env;
  const int sockets = std::clamp(whole_number(env, "NCCL_SOCKET_NTHREADS", 1), 1, 64) *
                      std::clamp(whole_number(env, "NCCL_NSOCKS_PERTHREAD", 1), 1, 64);
  return kTcpStream * std::clamp(sockets, 1, 64);
}

Nanos CommunicatorModel::Impl::pair_latency(bool between_nodes) const {
  // Start plus one hop of a ring in the SIMPLE protocol (NCCL model §2).
  const double hop = between_nodes ? 14.0 + timing.shape.ring.latency_inter_us
                     : placement.intra == IntraTransport::kNvlink ? 3.4
                                                                  : 5.7;
  return static_cast<Nanos>(std::nearbyint((8.4 + hop) * 1000));
}

Result<CallTraffic> CommunicatorModel::Impl::pairs(const traces::Call& call,
                                                   uint32_t member) const {
  const Loads loads(context, placement, graphs);
  const auto members = static_cast<uint32_t>(placement.members.size());
  const auto bytes = static_cast<double>(std::max(call.bytes_in, call.bytes_out));
  CallTraffic out;
  out.algorithm = "P2P/SIMPLE";
  out.latency = pair_latency(placement.groups.size() > 1);
  if (call.collective == Collective::kAllToAll) {
    double unit = 1;
    std::vector<LinkWeight> links = loads.all_pairs(unit);
    out.flows.push_back({std::move(links), bytes / members * unit, 0});
    out.bus_bytes = bytes * (members - 1) / members;
    out.channels = graphs.shape.n_channels;
    return out;
  }
  const auto peer = static_cast<uint32_t>(std::max(0, call.peer));
  if (peer >= members || member >= members) {
    return fail(Code::kBadInput,
                fmt::format("{} names member {} of a communicator of {}", name_of(call.collective),
                            peer, members),
                "trace", "the trace contradicts itself; record it again");
  }
  if (call.collective == Collective::kSend || call.collective == Collective::kRecv) {
    const bool far = placement.members[member].gpu.node != placement.members[peer].gpu.node;
    out.latency = pair_latency(far);
    out.channels = 2;
    out.bus_bytes = bytes;
    if (peer != member) {
      out.flows.push_back({loads.pair(member, peer, 2), bytes / 2, far ? channel_cap() : 0});
    }
    return out;
  }
  // Gather and scatter: the root and every other member, an equal part each.
  const bool to_root = call.collective == Collective::kGather;
  std::vector<LinkWeight> links;
  for (uint32_t m = 0; m < members; ++m) {
    if (m == peer) continue;
    for (const LinkWeight& use : to_root ? loads.pair(m, peer, 1) : loads.pair(peer, m, 1)) {
      links.push_back(use);
    }
  }
  const Bytes own = to_root ? call.bytes_in : call.bytes_out;
  const double part = own > 0 ? static_cast<double>(own) : bytes / members;
  out.bus_bytes = part * (members - 1);
  out.channels = graphs.shape.n_channels;
  out.flows.push_back({std::move(links), part, 0});
  return out;
}

}  // namespace rehearse::sim
