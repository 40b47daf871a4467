// SPDX-License-Identifier: Apache-2.0
#include "sim/nccl/pairs.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sim/nccl/loads.hpp"
#include "sim/nccl/timing.hpp"

namespace rehearse::sim {
namespace {

using traces::Collective;

const pb::Gpu& gpu_of(const PairContext& of, uint32_t member) {
  const GpuRef at = of.placement.members[member].gpu;
  return of.context.platform.nodes(static_cast<int>(at.node)).gpus(static_cast<int>(at.gpu));
}

// What a member exchanges with others in one call.
struct Exchange {
  Protocol protocol = Protocol::kSimple;
  int64_t peers = 1;
  bool between = false;  // nodes
};

// Its latency, and the terms of that.
void add_latency(const PairContext& of, const Exchange& exchange, CallTraffic& out) {
  const auto [protocol, peers, between] = exchange;
  const HopKind kind = between ? hop_between(of.placement) : hop_inside(of.placement);
  const double base = base_latency_us(protocol);
  const double hop = hop_latency_us(kind, Algorithm::kRing, protocol);
  out.parts = {{"start of the kernel", 1, base + of.parameters.launch_us},
               {std::string("hop over ") + name_of(kind), 1,
                hop * of.parameters.hop[index_of(kind)][index_of(protocol)]}};
  if (peers > 1) out.parts.push_back({"further peers", peers - 1, of.parameters.peer_us});
  out.latency = sum_of(out.parts);
  out.terms.protocol = protocol;
  out.terms.start_us = base;
  out.terms.hops_us = {};
  out.terms.hops_us[index_of(kind)] = hop;
  out.terms.further_peers = std::max<int64_t>(0, peers - 1);
  out.terms.further_pair_calls = 2 * peers - 1;
  out.terms.issue_channels_us =
      of.model.version.constants.issue_channel_us * std::max(1, out.channels);
}

// Bytes on the wire, as slow as the protocol is.
double wire_bytes(const PairContext& of, double bytes, Protocol protocol) {
  return bytes * wire_factor(protocol) / of.parameters.rate[index_of(protocol)];
}

// In a communicator of several nodes all pairs move the network's chunks, those of one node too.
bool by_network_chunks(const PairContext& of) { return of.placement.groups.size() > 1; }

// Rate of one channel of send and recv.
BytesPerSec pair_cap(const PairContext& of, const pb::Gpu& gpu, const P2pTransfer& plan) {
  return pair_channel_limit(gpu.clock(), plan.chunk_bytes) *
         (by_network_chunks(of) ? of.parameters.pair_network : of.parameters.pair);
}

void add_cap_term(const PairContext& of, const FlowLoad& flow, Protocol protocol,
                  TimeTerms& terms) {
  if (flow.cap <= 0) return;
  const double rate = of.parameters.rate[index_of(protocol)];
  const double us = flow.bytes / flow.cap * rate * 1e6;
  if (by_network_chunks(of)) {
    terms.pair_network_us = std::max(terms.pair_network_us, us * of.parameters.pair_network);
  } else {
    terms.pair_us = std::max(terms.pair_us, us * of.parameters.pair);
  }
}

Queues queues_for(const PairContext& of, Bytes bytes, const P2pTransfer& plan) {
  const int64_t chunk = std::max<int64_t>(1, plan.chunk_bytes);
  return queues_of(of.placement, bytes / chunk, std::min(chunk, std::max<int64_t>(1, bytes)));
}

// One transfer on its channels. With one channel per unit of weight they share links like rings do.
Result<FlowLoad> transfer(const PairContext& of, uint32_t from, uint32_t to, Bytes bytes,
                          P2pTransfer& plan) {
  const bool between = of.placement.apart(from, to);
  RH_TRY(plan, p2p_transfer(p2p_shape(of), of.model.settings, bytes,
                            between ? P2pRoute::kNetwork : P2pRoute::kInsideNode));
  const auto members = static_cast<uint32_t>(of.placement.members.size());
  const auto channels = static_cast<uint32_t>(std::max(1, plan.channels));
  const Queues queues = queues_for(of, bytes / channels, plan);
  FlowLoad flow;
  flow.links = Loads(of.context, of.placement, of.graphs, queues).pair(from, to, channels);
  flow.bytes = wire_bytes(of, static_cast<double>(bytes) / channels, plan.protocol);
  flow.cap = pair_cap(of, gpu_of(of, from), plan);
  if (between && of.placement.inter == InterTransport::kSocket) {
    flow.cap = std::min(flow.cap, socket_limit(of.placement.members[from], channels));
  }
  flow.bytes /= queues.units;
  flow.cap /= queues.units;
  flow.pair = from * members + to + 1;
  return flow;
}

Result<CallTraffic> all_to_all(const PairContext& of, const traces::Call& call) {
  const auto members = static_cast<uint32_t>(of.placement.members.size());
  const auto bytes = static_cast<double>(std::max(call.bytes_in, call.bytes_out));
  const bool between = of.placement.groups.size() > 1;
  const P2pShape shape = p2p_shape(of);
  const auto part = static_cast<Bytes>(bytes / members);
  RH_TRY(const P2pLayout layout, p2p_layout(shape, of.model.settings));
  RH_TRY(const P2pTransfer plan,
         p2p_transfer(shape, of.model.settings, part,
                      between ? P2pRoute::kNetwork : P2pRoute::kInsideNode));
  CallTraffic out;
  out.algorithm = fmt::format("P2P/{}", name_of(plan.protocol));
  out.channels = layout.channels;
  add_latency(of, {plan.protocol, members - 1, between}, out);
  out.bus_bytes = bytes * (members - 1) / members;
  double unit = 1;
  FlowLoad flow;
  out.queues = queues_for(of, part, plan);
  flow.links = Loads(of.context, of.placement, of.graphs, out.queues).all_pairs(unit);
  flow.bytes = wire_bytes(of, bytes / members * unit, plan.protocol);
  // A pair has its channels; all pairs of a GPU have those of the communicator.
  const double lanes = std::min<double>(plan.channels, layout.channels / (members - 1.0));
  flow.cap = lanes * pair_cap(of, gpu_of(of, 0), plan) * unit;
  if (between && of.placement.inter == InterTransport::kSocket) {
    const double peers = std::max(1.0, static_cast<double>(members) - shape.ranks_per_node);
    flow.cap =
        std::min(flow.cap, lanes * unit * socket_limit(of.placement.members[0], peers * lanes));
  }
  add_cap_term(of, flow, plan.protocol, out.terms);
  out.flows.push_back(std::move(flow));
  limit_by_network(of.context, of.placement, out.flows);
  return out;
}

}  // namespace

P2pShape p2p_shape(const PairContext& of) {
  P2pShape shape;
  const CommShape& comm = of.graphs.shape;
  shape.n_nodes = comm.n_nodes;
  shape.ranks_per_node = comm.ranks_per_node;
  shape.n_channels = comm.n_channels;
  shape.all_nvlink = of.placement.intra == IntraTransport::kNvlink;
  const pb::Gpu& gpu = gpu_of(of, 0);
  const double link = gpu.nvlink().bandwidth() / 1e9;
  if (shape.all_nvlink && link > 0) {
    shape.nvlink_link_gbps = link;
    shape.nvlink_path_gbps = link * gpu.nvlink().links();
  }
  return shape;
}

Result<CallTraffic> shift_traffic(const PairContext& of, Bytes bytes) {
  const auto members = static_cast<uint32_t>(of.placement.members.size());
  CallTraffic out;
  out.bus_bytes = static_cast<double>(bytes);
  for (uint32_t m = 0; m < members && members > 1; ++m) {
    P2pTransfer plan;
    RH_TRY(FlowLoad flow, transfer(of, m, (m + 1) % members, bytes, plan));
    out.algorithm = fmt::format("P2P/{}", name_of(plan.protocol));
    out.channels = std::max(out.channels, plan.channels);
    const bool between = of.placement.apart(m, (m + 1) % members);
    CallTraffic one;
    one.channels = plan.channels;
    add_latency(of, {plan.protocol, 1, between}, one);
    add_cap_term(of, flow, plan.protocol, out.terms);
    if (one.latency > out.latency) {
      one.terms.pair_us = out.terms.pair_us;
      one.terms.pair_network_us = out.terms.pair_network_us;
      out.parts = one.parts;
      out.latency = one.latency;
      out.terms = one.terms;
    }
    out.flows.push_back(std::move(flow));
  }
  limit_by_network(of.context, of.placement, out.flows);
  return out;
}

Result<CallTraffic> pair_traffic(const PairContext& of, const traces::Call& call, uint32_t member) {
  if (call.collective == Collective::kAllToAll) return all_to_all(of, call);
  const auto members = static_cast<uint32_t>(of.placement.members.size());
  const Bytes bytes = std::max(call.bytes_in, call.bytes_out);
  const auto peer = static_cast<uint32_t>(std::max(0, call.peer));
  if (peer >= members || member >= members) {
    return fail(Code::kBadInput,
                fmt::format("{} names member {} of a communicator of {}", name_of(call.collective),
                            peer, members),
                "trace", "the trace contradicts itself; record it again");
  }
  CallTraffic out;
  if (call.collective == Collective::kSend || call.collective == Collective::kRecv) {
    const bool between = of.placement.apart(member, peer);
    P2pTransfer plan;
    RH_TRY(FlowLoad flow, transfer(of, member, peer, bytes, plan));
    out.algorithm = fmt::format("P2P/{}", name_of(plan.protocol));
    out.channels = plan.channels;
    add_latency(of, {plan.protocol, 1, between}, out);
    add_cap_term(of, flow, plan.protocol, out.terms);
    out.bus_bytes = static_cast<double>(bytes);
    if (peer != member) out.flows.push_back(std::move(flow));
    limit_by_network(of.context, of.placement, out.flows);
    return out;
  }
  // Gather and scatter: the root and every other member, an equal part each.
  out.queues = queues_of(of.placement, 1, std::max<int64_t>(1, bytes / members));
  const Loads loads(of.context, of.placement, of.graphs, out.queues);
  const bool to_root = call.collective == Collective::kGather;
  std::vector<LinkWeight> links;
  for (uint32_t m = 0; m < members; ++m) {
    if (m == peer) continue;
    for (const LinkWeight& use : to_root ? loads.pair(m, peer, 1) : loads.pair(peer, m, 1)) {
      links.push_back(use);
    }
  }
  const Bytes own = to_root ? call.bytes_in : call.bytes_out;
  const double part = own > 0 ? static_cast<double>(own) : static_cast<double>(bytes) / members;
  out.algorithm = "P2P/SIMPLE";
  out.channels = of.graphs.shape.n_channels;
  add_latency(of, {Protocol::kSimple, members - 1, of.placement.groups.size() > 1}, out);
  out.bus_bytes = part * (members - 1);
  out.flows.push_back({std::move(links), part / out.queues.units, 0, 0});
  limit_by_network(of.context, of.placement, out.flows);
  return out;
}

}  // namespace rehearse::sim
