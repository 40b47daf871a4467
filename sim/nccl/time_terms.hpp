// SPDX-License-Identifier: Apache-2.0
// A call's time with the platform to itself as a closed form of the parameters that calibration
// changes: what NCCL decided and which links carry how much does not depend on them, so it is worked
// out once. Agrees with time_alone() where one kind of flow bounds the call, which is all of them but
// trees of in-switch reduction (there the slower of both flows).
#pragma once

#include <array>
#include <cstdint>

#include "sim/nccl/time_parameters.hpp"

namespace rehearse::sim {

constexpr size_t kLinkKinds = 8;  // platforms::LinkKind

// Microseconds with every multiple at 1 and every link at its data-sheet rate.
struct TimeTerms {
  Protocol protocol = Protocol::kSimple;
  double start_us = 0;                      // NCCL's own
  std::array<double, kHopKinds> hops_us{};  // one pass
  int64_t further_peers = 0;
  int64_t further_channels = 0;
  int64_t further_pair_calls = 0;  // sends and receives beyond the first, on the host
  // What the host does between two calls of one GPU: a launch for each GPU that its thread serves in turn, in older
  // versions of NCCL with some work for each channel.
  int64_t launches = 1;
  double issue_channels_us = 0;
  bool from_graph = false;  // launched with many others at once: the host does not matter

  // Later loops of a ring wait for hops that a slice does not hide: each of `loop_hops` takes
  // loop_hop_us less the time of a slice, which is `slice_share` of the transfer.
  int64_t loops = 0;
  std::array<double, kHopKinds> loop_hop_us{};
  std::array<double, kHopKinds> loop_hops{};
  double slice_share = 0;

  std::array<double, kLinkKinds> links_us{};  // slowest link of each kind
  double nvls_us = 0;                         // NVLink's, by in-switch reduction
  double nvls_prior = 1;                      // its share by the GPU
  double channel_us = 0;                      // that the limit of one channel asks for
  double pair_us = 0;
  double pair_network_us = 0;
  double host_us = 0;
  double socket_us = 0;
};

// Share of the data sheet by platforms::LinkKind.
using LinkShares = std::array<double, kLinkKinds>;

// What the host takes between two such calls of a process that does nothing else.
[[nodiscard]] double issue_us(const TimeTerms& terms, const TimeParameters& parameters);

[[nodiscard]] double time_us(const TimeTerms& terms, const TimeParameters& parameters,
                             const LinkShares& shares);

}  // namespace rehearse::sim
