// SPDX-License-Identifier: Apache-2.0
// Collectives that run on the hosts' processors instead of the GPUs: what Gloo and Open MPI do with
// a call, as rounds of messages. A library says how many rounds a collective takes and what each
// member sends (HostPlan); from that and from the way between hosts follow latency and flows.
//
//   time = copy to the host + rounds x latency of a message
//          + bytes a member sends / min(stream, reduction, links shared with others)
//          + copy back
//
// Known blind spots: segments of a pipelined ring and the cache of a processor are not modelled;
// messages inside a node are bound by the core that copies them, not by memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/nccl/placement.hpp"
#include "sim/nccl/traffic.hpp"

namespace rehearse::sim {

// Who sends to whom.
enum class HostPattern : uint8_t {
  kRing,   // every member to the next one
  kTree,   // parents to children of a binomial tree, or back
  kPairs,  // every member to every other one
  kRoot    // one member to or from all others
};

struct HostPlan {
  std::string algorithm;  // "GLOO/RING"
  HostPattern pattern = HostPattern::kRing;
  int64_t rounds = 0;    // messages one after another on the longest way
  double bytes = 0;      // that cross one edge of the pattern
  bool reduces = false;  // a processor adds them up
  uint32_t root = 0;     // kRoot, kTree: member
};

// How hosts reach each other for one library.
struct HostWires {
  bool rdma = false;
  std::vector<uint32_t> port;    // by group: adapter (rdma) or IP interface
  double message_us = 0;         // latency between nodes
  double local_us = 0;           // latency inside a node
  BytesPerSec stream = 0;        // one connection between nodes; 0: no limit
  BytesPerSec local_stream = 0;  // one connection inside a node
  BytesPerSec reduction = 0;     // adding up in host memory
};

// IP interface of a node that a comma-separated filter of names allows (empty: the first LAN one
// that is up); UINT32_MAX: none.
[[nodiscard]] uint32_t host_interface(const pb::Node& node, const std::string& filter);

// Traffic of a planned collective. `bytes` of the call's buffers on a GPU are staged through host
// memory before and after.
[[nodiscard]] CallTraffic host_traffic(const ModelContext& context, const Placement& placement,
                                       const HostWires& wires, const HostPlan& plan,
                                       const traces::Call& call);

}  // namespace rehearse::sim
