// SPDX-License-Identifier: Apache-2.0
// Where the members of a communicator sit and which transport joins them: the part of NCCL's
// start-up that looks at hardware and at each rank's environment (NCCL model §7.2 and §8). A
// variable counts for the rank that has it; one rank that cannot use a network keeps the whole
// communicator from it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/finding.hpp"
#include "sim/nccl/network_settings.hpp"
#include "sim/nccl/node_graphs.hpp"
#include "sim/nccl/topology_settings.hpp"
#include "sim/nccl/traffic.hpp"
#include "sim/nccl/transports.hpp"

namespace rehearse::sim {

using platforms::GpuRef;

struct Member {
  uint32_t rank = 0;
  GpuRef gpu;
  std::map<std::string, std::string> env;
  uint32_t group = 0;  // index into Placement::groups
  uint32_t local = 0;  // index into the GPUs of the group's system
  NetworkSettings network;
};

// The members that reach each other without a network, in order of rank: those of one node, or of an
// NVLink domain of several; what NCCL calls a node. Ranks of one node that share neither peer access
// nor memory, or that a network joins faster than either, are groups of their own.
struct LocalGroup {
  uint32_t node = 0;                // of its first member
  std::vector<uint32_t> members;    // indices into Placement::members
  std::vector<uint32_t> by_gpu;     // the same in order of the system's GPUs
  std::vector<uint32_t> nics;       // RDMA NICs of `node` that all of its ranks may use
  uint32_t interface = UINT32_MAX;  // first IP interface for sockets
  TopologySettings settings;        // the weakest of its ranks
  // As NCCL sees it, with what its search found; shared with groups that are alike. `system.hosts`
  // are positions: see host_of.
  std::shared_ptr<const NodeGraphs> graphs;
  std::vector<uint32_t> hosts;  // nodes of the platform, by position in graphs->system.hosts

  [[nodiscard]] const NodeSystem& system() const { return graphs->system; }
};

struct Placement {
  std::vector<Member> members;                     // in communicator order
  std::vector<LocalGroup> groups;                  // nodes in order of first appearance
  IntraTransport intra = IntraTransport::kNvlink;  // the worst between any two of one node
  InterTransport inter = InterTransport::kNone;
  std::vector<Fallback> fallbacks;
  std::string offered;             // transport with defaults and all parts in order
  bool staged_sends = false;       // with GPUDirect RDMA: some ranks send through host memory
  bool host_only = false;          // Gloo and MPI: everything goes through host memory
  std::vector<std::string> notes;  // variables that NCCL or this model would not honour
  Findings files;                  // about files that variables name

  // Whether two members, by position, reach each other by the network alone.
  [[nodiscard]] bool apart(uint32_t a, uint32_t b) const {
    return members[a].group != members[b].group;
  }
  // Between two members of one group.
  [[nodiscard]] PairTransport between(const Member& a, const Member& b) const;
};

[[nodiscard]] Result<Placement> place(const ModelContext& context,
                                      const traces::Communicator& communicator);

}  // namespace rehearse::sim
