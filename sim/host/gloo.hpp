// SPDX-License-Identifier: Apache-2.0
// Gloo as PyTorch uses it (gloo/allreduce.cc, allgather.cc, broadcast.cc, reduce.cc, alltoall.cc,
// barrier.cc): TCP connections between every two processes, also of one node; the ring for
// all-reduce, all-gather and reduce-scatter, a binomial tree for broadcast and reduce, direct
// messages for all-to-all, gather and scatter, dissemination for the barrier. The interface is
// GLOO_SOCKET_IFNAME's, else the first LAN one.
#pragma once

#include "sim/host/host_collective.hpp"

namespace rehearse::sim {

[[nodiscard]] HostPlan gloo_plan(const traces::Call& call, uint32_t members);

// kBadInput when a node has no usable interface.
[[nodiscard]] Result<HostWires> gloo_wires(const ModelContext& context, const Placement& placement);

}  // namespace rehearse::sim
