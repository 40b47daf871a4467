// SPDX-License-Identifier: Apache-2.0
#include "sim/nccl/time_parameters.hpp"

namespace rehearse::sim {
namespace {

// What a kernel's launch and end add to NCCL's own base latency in a stream of calls, µs: a prior, a
// typical figure for an empty kernel.
constexpr double kLaunchUs = 6;

// What a thread of the host takes to launch one call on one GPU in a stream of calls, µs: a prior, a
// typical figure for a kernel's launch with the bookkeeping of NCCL.
constexpr double kIssueUs = 5;

// What each further peer of one call costs: its flag is looked at in turn (a prior).
constexpr double kPeerUs = 3;

// Loads and stores of a GPU's threads to host memory reach this share of its PCIe link; copy engines
// reach more, but NCCL's shared memory does not use them. A prior: 12.5 GB/s of a Gen4 x16 link, as
// public traces of four RTX 4090 without peer access show.
constexpr double kHostShare = 0.40;

double stated_or(double stated, double prior) { return stated > 0 ? stated : prior; }
double stated_us(int64_t stated_ns, double prior_us) {
  return stated_ns > 0 ? static_cast<double>(stated_ns) / 1000 : prior_us;
}

std::array<double, 3> multiples(const pb::ProtocolShare& share) {
  return {stated_or(share.ll(), 1), stated_or(share.ll128(), 1), stated_or(share.simple(), 1)};
}

}  // namespace

TimeParameters time_parameters(const pb::Efficiency& stated) {
  TimeParameters out;
  out.launch_us = stated_us(stated.launch(), kLaunchUs);
  out.issue_us = stated_us(stated.issue(), kIssueUs);
  out.issue_pair_us = stated_us(stated.issue_pair(), 0);
  out.channel_start_us = stated_us(stated.channel_start(), 0);
  out.peer_us = stated_us(stated.peer(), kPeerUs);
  const auto hop = [&](HopKind kind) -> auto& { return out.hop[static_cast<size_t>(kind)]; };
  hop(HopKind::kNvlink) = multiples(stated.nvlink_hop());
  hop(HopKind::kPcie) = multiples(stated.pcie_hop());
  hop(HopKind::kHost) = multiples(stated.host_hop());
  hop(HopKind::kRdmaDirect) = hop(HopKind::kRdmaStagedSend) = hop(HopKind::kRdma) =
      multiples(stated.network_hop());
  hop(HopKind::kSocket) = multiples(stated.socket_hop());
  out.rate = multiples(stated.rate());
  out.channel = stated_or(stated.channel(), 1);
  out.pair = stated_or(stated.pair(), 1);
  out.pair_network = stated_or(stated.pair_network(), 1);
  out.host_share = stated_or(stated.host(), kHostShare);
  out.nvls_share = stated.nvls();
  return out;
}

}  // namespace rehearse::sim
