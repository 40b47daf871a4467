// SPDX-License-Identifier: Apache-2.0
// How the data of one channel is cut into chunks, slices and proxy steps (NCCL 2.28.9
// calcCollChunking; NCCL model §6.2 to §6.4). A loop moves chunks_per_loop chunks; a chunk takes
// chunk_steps slots of the connection buffer; a slice is the unit of one network message.
#pragma once

#include <cstdint>

#include "sim/nccl/call.hpp"
#include "sim/nccl/choice.hpp"
#include "sim/nccl/model.hpp"

namespace rehearse::sim {

struct ChunkRequest {
  Call call;
  Choice choice;
  // Bytes the chunks have to cover: of one channel, or of all `channels` that share evenly; times
  // the ranks for AllGather and ReduceScatter.
  std::int64_t bytes = 0;
  int channels = 1;
};

struct ChunkPlan {
  std::int64_t chunk_bytes = 0;
  std::int64_t slice_bytes = 0;
  // Chunk of the last loop: a ring AllReduce shrinks it to what is left for each rank.
  std::int64_t last_chunk_bytes = 0;
  int chunk_steps = 1;
  int slice_steps = 1;
  std::int64_t loops = 0;
  std::int64_t steps_per_loop = 1;
  std::int64_t chunks_per_loop = 1;
  std::int64_t proxy_steps = 0;
};

[[nodiscard]] ChunkPlan plan_chunks(const NcclModel& model, const ChunkRequest& request);

}  // namespace rehearse::sim
