// SPDX-License-Identifier: Apache-2.0
// The variables by which a rank shapes what it puts on the network: queue pairs, routing and classes
// of its connections, sockets. Which adapters and transports it uses is decided in networks.hpp.
// Values only.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "platforms/proto/platform.pb.h"

namespace rehearse::sim {

struct NetworkSettings {
  uint32_t queue_pairs = 1;           // NCCL_IB_QPS_PER_CONNECTION
  bool split_data = false;            // NCCL_IB_SPLIT_DATA_ON_QPS: every message over all of them
  int adaptive = -1;                  // NCCL_IB_ADAPTIVE_ROUTING; -1: on InfiniBand, not on RoCE
  int64_t adaptive_threshold = 8192;  // NCCL_IB_AR_THRESHOLD: larger messages are spread
  uint32_t service_level = 0;         // NCCL_IB_SL
  uint32_t traffic_class = 0;         // NCCL_IB_TC
  bool relaxed_ordering = true;       // NCCL_IB_PCI_RELAXED_ORDERING is not 0
  // Threads that serve one connection over TCP (NCCL_SOCKET_NTHREADS); 0: the rank's one network thread serves all of them.
  int socket_threads = 0;
  int sockets = 1;  // of one connection: threads x NCCL_NSOCKS_PERTHREAD, at most 64

  bool operator==(const NetworkSettings&) const = default;
};

// Most queue pairs of a connection that are told apart; a larger number counts as this.
constexpr uint32_t kMostQueuePairs = 16;

// Reads them from a rank's environment on `node`, which has defaults of its own for sockets (two
// threads with eight sockets each where there are EFA adapters, elsewhere none: NCCL_NSOCKS_PERTHREAD alone then changes
// nothing). What NCCL would not understand keeps its default and gives a sentence in `notes`. Not known: Google's
// interfaces, for which NCCL takes four threads.
[[nodiscard]] NetworkSettings network_settings(
    const std::map<std::string, std::string>& environment, const pb::Node& node,
    std::vector<std::string>& notes);

// Part of a port's rate that the class of a rank's traffic gets from the fabric; 1: all.
[[nodiscard]] double class_share(const pb::Fabric& fabric, pb::NicKind kind,
                                 const NetworkSettings& settings);

// Part of its rate at which an adapter of `node` reaches GPU memory. Plugins other than that of verbs do not look at the
// setting.
[[nodiscard]] double ordering_share(const pb::Node& node, pb::NicKind kind,
                                    const NetworkSettings& settings);

// Do switches spread this rank's messages of `bytes` over equal paths?
[[nodiscard]] bool asks_for_spreading(const NetworkSettings& settings, pb::NicKind kind,
                                      int64_t bytes);

}  // namespace rehearse::sim
