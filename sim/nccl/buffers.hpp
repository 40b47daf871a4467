// SPDX-License-Identifier: Apache-2.0
// Memory that the connections of a communicator take (NCCL model §9.2): per channel and connection
// one buffer of each protocol at the receiver, over the network at the sender too; multicast slots
// of NVLS. Pure function.
#pragma once

#include "sim/nccl/graphs.hpp"
#include "sim/nccl/model.hpp"
#include "sim/nccl/placement.hpp"

namespace rehearse::sim {

// Of one rank.
struct ConnectionMemory {
  Bytes gpu = 0;
  Bytes host = 0;
};

// Of the rank that has most, for the connections of one algorithm.
[[nodiscard]] ConnectionMemory connection_memory(const ModelContext& context,
                                                 const Placement& placement, const Graphs& graphs,
                                                 const NcclModel& model, Algorithm algorithm);

}  // namespace rehearse::sim
