// SPDX-License-Identifier: Apache-2.0
#include "sim/nccl/time_terms.hpp"

#include <algorithm>

namespace rehearse::sim {
namespace {

double transfer_us(const TimeTerms& t, const TimeParameters& p, const LinkShares& shares) {
  double slowest = 0;
  for (size_t kind = 0; kind < kLinkKinds; ++kind) {
    if (t.links_us[kind] > 0) slowest = std::max(slowest, t.links_us[kind] / shares[kind]);
  }
  if (t.nvls_us > 0) {
    const double share = p.nvls_share > 0 ? p.nvls_share : t.nvls_prior;
    slowest = std::max(slowest, t.nvls_us / share / shares.front());
  }
  slowest = std::max(slowest, t.channel_us / p.channel);
  slowest = std::max(slowest, t.pair_us / p.pair);
  slowest = std::max(slowest, t.pair_network_us / p.pair_network);
  slowest = std::max(slowest, t.host_us / p.host_share);
  slowest = std::max(slowest, t.socket_us);
  return slowest / p.rate[index_of(t.protocol)];
}

}  // namespace

double issue_us(const TimeTerms& t, const TimeParameters& p) {
  if (t.from_graph) return 0;
  return static_cast<double>(t.launches) *
         (p.issue_us + t.issue_channels_us +
          static_cast<double>(t.further_pair_calls) * p.issue_pair_us);
}

double time_us(const TimeTerms& t, const TimeParameters& p, const LinkShares& shares) {
  const double transfer = transfer_us(t, p, shares);
  double latency = t.start_us + p.launch_us + static_cast<double>(t.further_peers) * p.peer_us;
  double wait = 0;
  for (size_t kind = 0; kind < kHopKinds; ++kind) {
    const double multiple = p.hop[kind][index_of(t.protocol)];
    latency += t.hops_us[kind] * multiple;
    wait += t.loop_hops[kind] *
            std::max(0.0, t.loop_hop_us[kind] * multiple - t.slice_share * transfer);
  }
  if (t.loops > 1) latency += static_cast<double>(t.loops - 1) * wait;
  return std::max(issue_us(t, p), latency + transfer) +
         static_cast<double>(t.further_channels) * p.channel_start_us;
}

}  // namespace rehearse::sim
