// SPDX-License-Identifier: Apache-2.0
#include "sim/nccl/traffic.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "sim/horovod/controller.hpp"
#include "sim/horovod/two_levels.hpp"
#include "sim/host/host_model.hpp"
#include "sim/nccl/dissent.hpp"
#include "sim/nccl/loads.hpp"
#include "sim/nccl/pairs.hpp"
#include "sim/nccl/pipeline_fill.hpp"
#include "sim/nccl/posts.hpp"
#include "sim/nccl/threads.hpp"
#include "sim/nccl/timing.hpp"
#include "sim/nccl/trace_call.hpp"
#include "sim/nccl/variables.hpp"

namespace rehearse::sim {
namespace {

using traces::Collective;

constexpr int64_t kLongCall = int64_t{1} << 40;  // bytes of one channel

// CollNet: what comes back from the switches has queue pairs and caps of its own.
constexpr uint32_t kBackFromSwitches = UINT32_MAX;

// Share of a channel's limit that the threads of a block reach: 256 fill it, which NCCL itself is content with where links
// are slow; fewer have fewer loads in flight (a prior). Words of LL carry their flags and are not waited for like that.
double thread_share(const NcclModel& model, const Choice& choice) {
  constexpr double kEnough = 256;
  const int threads = max_threads(model, choice.algorithm, choice.protocol);
  if (choice.protocol == Protocol::kLl || threads == 0) return 1;
  return std::min(1.0, threads / kEnough);
}

// Slices of heads, all channels of one together: NCCL's plugin takes them to switches that reduce.
bool has_slices_reduced(Algorithm algorithm) {
  return algorithm == Algorithm::kCollnetDirect || algorithm == Algorithm::kNvls;
}

// In-switch reduction does not reach the rate of plain copies; NCCL counts with the same factors.
double nvls_efficiency(int compute_capability) { return compute_capability >= 100 ? .74 : .85; }

// Horovod's settings of each member, once where they are alike: a collective starts with the slowest.
std::vector<HorovodSettings> horovod_members(const ModelContext& context,
                                             const Placement& placement, Findings& findings) {
  std::vector<HorovodSettings> out;
  if (context.launch.framework() != pb::HOROVOD) return out;
  const std::map<std::string, std::string>* last = nullptr;
  for (const Member& member : placement.members) {
    if (last != nullptr && *last == member.env) continue;
    last = &member.env;
    out.push_back(horovod_settings(member.env, context.launch.framework_version()));
    for (const std::string& note : out.back().notes) {
      findings.add("horovod-setting", Severity::kWarning, note, "correct or unset the variable");
    }
  }
  return out;
}

}  // namespace

struct CommunicatorModel::Impl {
  const ModelContext context;
  const TimeParameters parameters;
  Placement placement;
  Graphs graphs;
  NcclModel model;
  std::string transport;
  Findings findings;
  std::optional<HostModel> host = std::nullopt;  // instead of NCCL
  std::vector<HorovodSettings> horovod = {};     // of members, where they make calls wait
  std::vector<OtherDecider> others = {};         // ranks that have other settings

  [[nodiscard]] Result<CallTraffic> traffic(const traces::Call& call, uint32_t member) const;
  void compare_plans(const traces::Call& call, uint32_t member, CallTraffic& out) const;
  void add_waits_before(const traces::Call& call, CallTraffic& out) const;
  [[nodiscard]] CallTraffic planned(const Call& asked, const PlannedCall& plan) const;
  [[nodiscard]] std::vector<FlowLoad> flows(const Call& asked, const PlannedCall& plan,
                                            const Queues& queues) const;
  // Payload rate of one channel whatever the links offer, on the wire, by what limits it; 0: no
  // limit.
  struct Caps {
    BytesPerSec channel = 0, host = 0, sockets = 0, posts = 0, connection = 0;
    [[nodiscard]] BytesPerSec least() const;
  };
  [[nodiscard]] Caps caps(const Call& asked, const Choice& choice, int channels) const;
  void add_cap_terms(const Call& asked, const PlannedCall& plan, CallTraffic& out) const;
};

CommunicatorModel::CommunicatorModel(std::unique_ptr<const Impl> impl) : impl_(std::move(impl)) {}
CommunicatorModel::CommunicatorModel(CommunicatorModel&&) noexcept = default;
CommunicatorModel& CommunicatorModel::operator=(CommunicatorModel&&) noexcept = default;
CommunicatorModel::~CommunicatorModel() = default;

Result<CommunicatorModel> CommunicatorModel::create(const ModelContext& context,
                                                    const traces::Communicator& communicator) {
  if (const auto library = host_library(context.launch, communicator)) {
    RH_TRY(HostModel host, HostModel::create(context, *library, communicator));
    Impl impl{context,
              time_parameters(context.platform.efficiency()),
              host.placement(),
              {},
              {},
              host.transport(),
              {}};
    impl.placement.offered = impl.transport;
    impl.host.emplace(std::move(host));
    if (communicator.description != kLevelOfHorovod) {
      impl.horovod = horovod_members(context, impl.placement, impl.findings);
    }
    return CommunicatorModel(std::make_unique<const Impl>(std::move(impl)));
  }
  RH_TRY(Placement placement, place(context, communicator));
  RH_TRY(Graphs graphs, build_graphs(context, placement, 0));
  RH_TRY(NcclVersion version, parse_nccl_version(context.launch.nccl_version()));
  RH_TRY(Settings settings, parse_settings(placement.members.front().env, version));
  RH_TRY(NcclModel model, make_nccl_model(graphs.shape, settings, version));
  std::string transport = placement.inter != InterTransport::kNone ? name_of(placement.inter)
                                                                   : name_of(placement.intra);
  Findings findings;
  for (const std::string& note : placement.notes) {
    findings.add("nccl-setting", Severity::kWarning, note, "correct or unset the variable");
  }
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
  findings.merge(variable_findings(placement));
  findings.merge(placement.files);
  RH_TRY(std::vector<OtherDecider> others, other_deciders(context, placement, version));
  Impl impl{context,
            time_parameters(context.platform.efficiency()),
            std::move(placement),
            std::move(graphs),
            std::move(model),
            std::move(transport),
            std::move(findings)};
  impl.others = std::move(others);
  if (communicator.description != kLevelOfHorovod) {
    impl.horovod = horovod_members(context, impl.placement, impl.findings);
  }
  return CommunicatorModel(std::make_unique<const Impl>(std::move(impl)));
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
  if (impl_->placement.members.size() < 2) {
    CallTraffic alone;
    alone.algorithm = "local";
    return alone;
  }
  auto out = impl_->traffic(call, member);
  if (out) impl_->compare_plans(call, member, *out);
  if (out && !traces::is_point_to_point(call.collective)) impl_->add_waits_before(call, *out);
  return out;
}

void CommunicatorModel::Impl::add_waits_before(const traces::Call& call, CallTraffic& out) const {
  const auto ranks = static_cast<uint32_t>(placement.members.size());
  const Bytes bytes = std::max(call.bytes_in, call.bytes_out);
  const HorovodSettings* slowest = nullptr;
  Nanos longest = 0;
  for (const HorovodSettings& settings : horovod) {
    const Nanos own = longer_start(settings, ranks, bytes);
    if (own <= longest) continue;
    longest = own;
    slowest = &settings;
  }
  if (slowest == nullptr) return;
  std::vector<LatencyPart> before = longer_negotiation(*slowest, ranks);
  const std::vector<LatencyPart> copies = longer_copies(*slowest, bytes);
  before.insert(before.end(), copies.begin(), copies.end());
  out.parts.insert(out.parts.begin(), before.begin(), before.end());
  out.latency = sum_of(out.parts);
}

void CommunicatorModel::Impl::compare_plans(const traces::Call& call, uint32_t member,
                                            CallTraffic& out) const {
  const PairContext pairs{context, placement, graphs, model, parameters};
  const Bytes bytes = std::max(call.bytes_in, call.bytes_out);
  const auto peer = static_cast<uint32_t>(std::max(0, call.peer));
  for (const OtherDecider& other : others) {
    std::string text;
    if (traces::is_point_to_point(call.collective)) {
      const auto is_other = [&](uint32_t m) {
        return std::binary_search(other.ranks.begin(), other.ranks.end(),
                                  placement.members[m].rank);
      };
      if (is_other(member) == is_other(peer)) continue;
      text = dissent_in(pairs, other, bytes,
                        placement.apart(member, peer) ? P2pRoute::kNetwork : P2pRoute::kInsideNode);
    } else if (call.collective == Collective::kAllToAll || call.collective == Collective::kGather ||
               call.collective == Collective::kScatter) {
      const auto part = bytes / static_cast<Bytes>(placement.members.size());
      text = dissent_in(pairs, other, part,
                        placement.groups.size() > 1 ? P2pRoute::kNetwork : P2pRoute::kInsideNode);
    } else {
      text = dissent_in(model, other, nccl_call(call));
    }
    if (text.empty()) continue;
    out.dissenters.insert(out.dissenters.end(), other.ranks.begin(), other.ranks.end());
    if (!out.dissent.empty()) out.dissent += "; ";
    out.dissent += text;
  }
  std::sort(out.dissenters.begin(), out.dissenters.end());
}

Result<CallTraffic> CommunicatorModel::Impl::traffic(const traces::Call& call,
                                                     uint32_t member) const {
  if (host) return host->traffic(context, call, member);
  switch (call.collective) {
    case Collective::kAllToAll:
    case Collective::kGather:
    case Collective::kScatter:
    case Collective::kSend:
    case Collective::kRecv:
      return pair_traffic({context, placement, graphs, model, parameters}, call, member);
    default: {
      const Call asked = nccl_call(call);
      RH_TRY(const PlannedCall plan, plan_call(model, asked));
      return planned(asked, plan);
    }
  }
}

CallTraffic CommunicatorModel::traffic_of(const DecidedCall& decided) const {
  return impl_->planned(decided.asked, decided.plan);
}
const Placement& CommunicatorModel::placement() const { return impl_->placement; }
const Graphs& CommunicatorModel::graphs() const { return impl_->graphs; }
const NcclModel& CommunicatorModel::nccl() const { return impl_->model; }
const TimeParameters& CommunicatorModel::parameters() const { return impl_->parameters; }

CallTraffic CommunicatorModel::Impl::planned(const Call& asked, const PlannedCall& plan) const {
  const Choice& choice = plan.choice;
  const int n = static_cast<int>(placement.members.size());
  const auto ranks = static_cast<double>(n);
  const auto total = static_cast<double>(total_bytes(asked, n));
  const bool rooted = asked.function == Function::kBroadcast || asked.function == Function::kReduce;

  CallTraffic out;
  out.channels = std::max(1, plan.split.n_channels());
  out.algorithm = fmt::format("{}/{}", name_of(choice.algorithm), name_of(choice.protocol));
  out.bus_bytes = total * (asked.function == Function::kAllReduce ? 2 : 1) *
                  (rooted ? 1.0 : (ranks - 1) / ranks);
  // Every channel alike, so that more bytes never mean fewer loops.
  const ChunkPlan chunks = plan_chunks(
      model, {asked, choice, (total_bytes(asked, n) + out.channels - 1) / out.channels, 1});
  const int64_t slice = std::max<int64_t>(1, chunks.slice_bytes);
  out.queues = queues_of(placement, static_cast<int64_t>(total / out.channels) / slice, slice);
  out.flows = flows(asked, plan, out.queues);
  const Timing timing{model, placement, parameters, out.channels};
  out.parts = pass_latency(timing, asked.function, choice, out.terms);
  ChannelPace pace;
  for (const FlowLoad& flow : out.flows) {
    const double alone = rate_alone(context, flow) * out.queues.units;
    if (pace.rate == 0 || alone < pace.rate) pace = {alone, flow.bytes * out.queues.units};
  }
  const LatencyPart loops = loop_latency(timing, {asked, plan}, chunks, pace, out.terms);
  if (loops.count > 0) out.parts.push_back(loops);
  const double largest = total / out.channels;
  out.part =
      std::min(passed_on(choice.protocol, static_cast<double>(chunks.chunk_bytes)), largest) *
      wire_factor(choice.protocol) / out.queues.units;
  const LatencyPart fill = pipeline_fill(context, placement, graphs,
                                         {asked.function, choice.algorithm, asked.root,
                                          out.flows.back(), out.channels, out.part, out.queues});
  if (fill.count > 0) {
    out.parts.push_back(fill);
    out.fill = sum_of({fill});
    // In a stream of rooted calls the pipeline fills once.
    if (!rooted) out.terms.start_us += static_cast<double>(out.fill) / 1000;
  }
  out.latency = sum_of(out.parts);
  add_cap_terms(asked, plan, out);
  return out;
}

std::vector<FlowLoad> CommunicatorModel::Impl::flows(const Call& asked, const PlannedCall& plan,
                                                     const Queues& queues) const {
  const Choice& choice = plan.choice;
  const int channels = std::max(1, plan.split.n_channels());
  const auto ranks = static_cast<double>(placement.members.size());
  const auto total =
      static_cast<double>(total_bytes(asked, static_cast<int>(placement.members.size())));
  const double per_channel =
      total / channels * wire_factor(choice.protocol) / parameters.rate[index_of(choice.protocol)];
  const bool reduce_all = asked.function == Function::kAllReduce;
  const bool rooted = asked.function == Function::kBroadcast || asked.function == Function::kReduce;
  const Loads loads(context, placement, graphs, queues);
  const BytesPerSec limit = caps(asked, choice, channels).least();
  // Of CollNet: what a rank has and gets; the other direction is one node's part of it.
  const double nodes = reduce_all ? 1 : static_cast<double>(placement.groups.size());
  const double up = asked.function == Function::kAllGather ? 1 / nodes : 1;
  const double down = asked.function == Function::kReduceScatter ? 1 / nodes : 1;
  std::vector<FlowLoad> out;
  const auto add = [&](std::vector<LinkWeight> links, double bytes, BytesPerSec most) {
    out.push_back({std::move(links), bytes / queues.units, most / queues.units});
  };
  switch (choice.algorithm) {
    case Algorithm::kTree:
      add(loads.trees(channels), per_channel, limit);
      break;
    case Algorithm::kCollnetChain:
      add(loads.collnet_chains(channels, Loads::Way::kUp), per_channel * up, limit);
      add(loads.collnet_chains(channels, Loads::Way::kDown), per_channel * down, limit);
      out.back().pair = kBackFromSwitches;
      break;
    case Algorithm::kCollnetDirect: {
      const double slice = total / std::max(1, graphs.shape.collnet_heads);
      std::vector<LinkWeight> up_links = loads.collnet_heads(Loads::Way::kUp);
      const BytesPerSec inside = direct_limit(context, up_links, graphs.shape);
      const BytesPerSec most = limit > 0 && inside > 0 ? std::min(limit, inside) : limit + inside;
      add(std::move(up_links), slice * up, most);
      add(loads.collnet_heads(Loads::Way::kDown), slice * down, most);
      out.back().pair = kBackFromSwitches;
      break;
    }
    case Algorithm::kPat: {
      double unit = 1;
      std::vector<LinkWeight> links = loads.pat(channels, asked.function, unit);
      add(std::move(links), per_channel / ranks * unit, limit * unit);
      break;
    }
    case Algorithm::kRing: {
      const double share = rooted ? 1.0 : (ranks - 1) / ranks * (reduce_all ? 2 : 1);
      add(loads.rings(channels), per_channel * share, limit);
      break;
    }
    case Algorithm::kNvls:
    case Algorithm::kNvlsTree: {
      // In-switch reduction: what each of n GPUs sends is reduced on the way (n parts out, one in),
      // the result is multicast (one part out, n in). A part is 1/n of the data.
      const auto n = static_cast<uint32_t>(graphs.shape.ranks_per_node);
      const bool reduces = asked.function != Function::kAllGather;
      const bool copies = asked.function != Function::kReduceScatter;
      const uint32_t sent = (reduces ? n : 0) + (copies ? 1 : 0);
      const uint32_t received = (reduces ? 1 : 0) + (copies ? n : 0);
      const double share =
          parameters.nvls_share > 0 ? parameters.nvls_share : nvls_efficiency(graphs.shape.cc_min);
      out.push_back({loads.nvls(sent, received),
                     total / n / share / parameters.rate[index_of(choice.protocol)], 0});
      if (placement.groups.size() < 2) break;
      if (choice.algorithm == Algorithm::kNvlsTree) {
        const int slices = loads.head_slices();
        add(loads.node_trees(channels), per_channel / slices, limit / slices);
        break;
      }
      const double slice = total / std::max(1, graphs.shape.nvls_heads);
      add(loads.nvls_heads(Loads::Way::kUp), slice * up, limit);
      add(loads.nvls_heads(Loads::Way::kDown), slice * down, limit);
      out.back().pair = kBackFromSwitches;
      break;
    }
  }
  limit_by_network(context, placement, out);
  return out;
}

BytesPerSec CommunicatorModel::Impl::Caps::least() const {
  BytesPerSec least = 0;
  for (const BytesPerSec cap : {channel, host, sockets, posts, connection}) {
    if (cap > 0 && (least == 0 || cap < least)) least = cap;
  }
  return least;
}

CommunicatorModel::Impl::Caps CommunicatorModel::Impl::caps(const Call& asked, const Choice& choice,
                                                            int channels) const {
  Caps out;
  const bool apart = placement.groups.size() > 1;
  if (has_slices_reduced(choice.algorithm)) {
    if (apart) out.connection = connection_limit(context, placement) * channels;
    return out;
  }
  out.channel = channel_limit(model, choice.algorithm, choice.protocol, channels) *
                wire_factor(choice.protocol) * parameters.channel * thread_share(model, choice);
  out.host =
      host_memory_link(context, placement, graphs) * parameters.host_share / std::max(1, channels);
  const bool staged = placement.inter == InterTransport::kRdma ||
                      placement.inter == InterTransport::kSocket || placement.staged_sends;
  if (apart && staged) {
    const BytesPerSec own = staging_link(context, placement, graphs, choice.algorithm, channels) *
                            parameters.host_share;
    if (own > 0) out.host = out.host > 0 ? std::min(out.host, own) : own;
  }
  if (apart && placement.inter == InterTransport::kSocket) {
    const double connections = connections_of_busiest(graphs, choice.algorithm, channels);
    for (const Member& member : placement.members) {
      const BytesPerSec own = socket_limit(member, connections);
      out.sockets = out.sockets > 0 ? std::min(out.sockets, own) : own;
    }
  }
  if (apart && placement.inter != InterTransport::kNvlink) {
    // A channel is one connection between two nodes, or one of every head.
    const int connections =
        choice.algorithm == Algorithm::kNvlsTree ? std::max(1, graphs.shape.nvls_heads) : 1;
    out.connection = connection_limit(context, placement) * connections;
    const int64_t message = plan_chunks(model, {asked, choice, kLongCall, 1}).slice_bytes;
    const auto total = total_bytes(asked, static_cast<int>(placement.members.size()));
    const double messages = static_cast<double>(total) / channels / connections /
                            static_cast<double>(std::max<int64_t>(1, message));
    out.posts = posting_limit(graphs, choice,
                              {channels, message, messages, posted_by(context, placement)}) *
                wire_factor(choice.protocol);
  }
  return out;
}

void CommunicatorModel::Impl::add_cap_terms(const Call& asked, const PlannedCall& plan,
                                            CallTraffic& out) const {
  const Choice& choice = plan.choice;
  const double rate = parameters.rate[index_of(choice.protocol)];
  out.terms.nvls_prior = nvls_efficiency(graphs.shape.cc_min);
  const Caps limit = caps(asked, choice, out.channels);
  for (const FlowLoad& flow : out.flows) {
    if (flow.cap <= 0) continue;
    // Time that the least of them asks for; the others ask for less in proportion.
    const double least_us = flow.bytes * rate / flow.cap * 1e6;
    const auto longest = [&](double& us, BytesPerSec cap, double multiple) {
      if (cap > 0) us = std::max(us, least_us * limit.least() / cap * multiple);
    };
    longest(out.terms.channel_us, limit.channel, parameters.channel);
    longest(out.terms.host_us, limit.host, parameters.host_share);
    longest(out.terms.socket_us, limit.sockets, 1);
    // These stand beside the sockets: no parameter moves them either.
    longest(out.terms.socket_us, limit.posts, 1);
    longest(out.terms.socket_us, limit.connection, 1);
  }
}

}  // namespace rehearse::sim
