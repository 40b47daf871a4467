// SPDX-License-Identifier: Apache-2.0
// Traffic of send, recv and of what is made of them: all-to-all, gather, scatter. Channels and
// chunks follow sim/nccl/p2p.hpp; the rate of a channel and the latency are our own
// (sim/nccl/timing.hpp).
#pragma once

#include "sim/nccl/graphs.hpp"
#include "sim/nccl/model.hpp"
#include "sim/nccl/p2p.hpp"
#include "sim/nccl/placement.hpp"
#include "sim/nccl/time_parameters.hpp"

namespace rehearse::sim {

struct PairContext {
  const ModelContext& context;
  const Placement& placement;
  const Graphs& graphs;
  const NcclModel& model;
  const TimeParameters& parameters;
};

// What NCCL's planner of pairs wants to know about a communicator.
[[nodiscard]] P2pShape p2p_shape(const PairContext& of);

// As CommunicatorModel::traffic. kBadInput when the call names a member that does not exist.
[[nodiscard]] Result<CallTraffic> pair_traffic(const PairContext& of, const traces::Call& call,
                                               uint32_t member);

// Every member sends `bytes` to the next one and receives as much from the one before, in one
// group: what nccl-tests calls sendrecv.
[[nodiscard]] Result<CallTraffic> shift_traffic(const PairContext& of, Bytes bytes);

}  // namespace rehearse::sim
