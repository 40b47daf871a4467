// SPDX-License-Identifier: Apache-2.0
// What calibration may change in the time of a collective: few figures with a physical meaning. A
// platform states them (Platform.efficiency); what it leaves at 0 is the prior, whose reason stands
// beside it in the .cpp. Bandwidth shares of links are in sim/efficiency.hpp.
#pragma once

#include <array>
#include <cstdint>

#include "platforms/proto/platform.pb.h"
#include "sim/nccl/names.hpp"

namespace rehearse::sim {

// Where a hop runs.
enum class HopKind : uint8_t {
  kNvlink,
  kPcie,
  kHost,
  kRdmaDirect,
  kRdmaStagedSend,  // GPUDirect at the receiver only
  kRdma,
  kSocket
};
constexpr size_t kHopKinds = 7;

struct TimeParameters {
  double launch_us = 0;  // start and end of a kernel beyond NCCL's own base latency
  double issue_us = 0;   // host time of one launch; only a process that does nothing else feels it
  double issue_pair_us = 0;     // of one send or recv more in a call
  double channel_start_us = 0;  // of each further channel of a call
  double peer_us = 0;           // of each further peer of a call, on the GPU
  // Multiples of the model's tables.
  std::array<std::array<double, 3>, kHopKinds> hop{};  // latency, by kind and protocol
  std::array<double, 3> rate{};                        // of a protocol on any link
  double channel = 1;                                  // limit of one channel
  double pair_network = 1;                             // the same in communicators of several nodes
  double pair = 1;                                     // limit of one channel of send and recv
  double host_share = 0;                               // of a PCIe link through host memory
  double nvls_share = 0;                               // of NVLink's rate; 0: by the GPU
};

[[nodiscard]] TimeParameters time_parameters(const pb::Efficiency& stated);

}  // namespace rehearse::sim
