// SPDX-License-Identifier: Apache-2.0
// The whole decision for a call or a group of calls: choice, channels and chunks (NCCL 2.28.9
// ncclPrepareTasks; NCCL model §4.3 and §6). Pure functions; the result depends on nothing but the
// model and the calls in their order.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/error.hpp"
#include "sim/nccl/chunk.hpp"
#include "sim/nccl/split.hpp"

namespace rehearse::sim {

struct PlannedCall {
  std::size_t call = 0;  // position among the calls given
  Choice choice;
  ChannelSplit split;
  // Chunks of the first, the middle and the last channel; chunk_bytes 0: no such channel. Channels
  // that share evenly all follow `lo`.
  ChunkPlan lo;
  ChunkPlan mid;
  ChunkPlan hi;
};

struct GroupPlan {
  std::vector<PlannedCall> calls;  // in the order NCCL runs them; empty calls are dropped
  int block_threads = 0;           // CUDA threads of the kernel; 0: nothing to run
};

// A call alone in its group; its pipe_ops is taken as given. An empty call uses no channel.
[[nodiscard]] Result<PlannedCall> plan_call(const NcclModel& model, const Call& call);

// The same for a choice that is given: what would run if NCCL were made to choose it.
[[nodiscard]] PlannedCall plan_choice(const NcclModel& model, const Call& call,
                                      const Choice& choice);

// Calls issued between ncclGroupStart and ncclGroupEnd. Calls of like function, reduction and type
// and of like size are decided as one; their pipe_ops is ignored and follows from the group. Kernel
// argument limits, which split very long groups into several kernels, are not modelled.
[[nodiscard]] Result<GroupPlan> plan_group(const NcclModel& model, std::span<const Call> calls);

}  // namespace rehearse::sim
