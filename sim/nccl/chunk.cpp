// SPDX-License-Identifier: Apache-2.0
#include "sim/nccl/chunk.hpp"

#include <algorithm>
#include <array>
#include <span>

#include "sim/nccl/rounding.hpp"

namespace rehearse::sim {

namespace {

constexpr std::array<std::int64_t, kProtocolCount> kChunkGrain = {16, 1920, 512};
constexpr std::int64_t kMaxNetworkMessage = std::int64_t{1} << 30;

std::int64_t heads_of(const CommShape& shape, Algorithm algorithm) {
  return std::max(1, is_nvls(algorithm) ? shape.nvls_heads : shape.collnet_heads);
}

// Chunks are halved, down to `floor`, while there are fewer than `chunks` of them.
struct Stage {
  std::int64_t chunks;
  std::int64_t floor;
};

std::int64_t halve(std::int64_t chunk, std::int64_t bytes, std::int64_t parallel,
                   std::span<const Stage> stages) {
  for (const Stage& stage : stages) {
    while (bytes / (parallel * chunk) < stage.chunks && chunk > stage.floor) chunk /= 2;
  }
  return chunk;
}

std::int64_t collnet_direct_chunk(const NcclModel& model, const ChunkRequest& r,
                                  std::int64_t chunk) {
  const std::int64_t depth = model.shape.collnet_depth;
  const std::int64_t parallel = r.channels * heads_of(model.shape, r.choice.algorithm);
  const Stage stages[] = {{depth * 64, 131072}, {depth * 8, 65536}, {depth * 8, 32768}};
  return halve(chunk, r.bytes, parallel, stages);
}

std::int64_t collnet_chain_chunk(const NcclModel& model, const ChunkRequest& r) {
  const std::int64_t depth = model.shape.ranks_per_node;
  const std::int64_t start =
      std::min<std::int64_t>(262144, model.settings.step_bytes(Protocol::kSimple));
  const Stage stages[] = {{depth * 64, 131072}, {depth * 8, 65536}, {depth, 32768}};
  return halve(start, r.bytes, r.channels, stages);
}

// Chunks drop to `size` when the data does not fill `loops` loops of them.
struct Drop {
  std::int64_t loops;
  std::int64_t size;
};

std::int64_t drop(std::int64_t chunk, std::int64_t bytes, std::int64_t parallel,
                  std::span<const Drop> drops) {
  for (const Drop& d : drops) {
    if (bytes < d.loops * parallel * chunk && chunk > d.size) chunk = d.size;
  }
  return chunk;
}

std::int64_t nvls_chunk(const NcclModel& model, const ChunkRequest& r, std::int64_t chunk) {
  if (r.call.nvls_registered && is_gather(r.call.function)) {
    return model.settings.step_bytes(Protocol::kSimple);
  }
  std::int64_t cap = model.settings.nvls_chunk_bytes;
  const Cost& all_reduce =
      model.table.at({Function::kAllReduce, Algorithm::kNvls, Protocol::kSimple});
  if (model.shape.n_nodes > 1 && all_reduce.bandwidth_gbps < 150) cap = 32768;
  const std::int64_t parallel = r.channels * heads_of(model.shape, Algorithm::kNvls);
  const Drop drops[] = {{64, 65536}, {8, 32768}, {2, 16384}};
  return drop(std::min(chunk, cap), r.bytes, parallel, drops);
}

std::int64_t nvls_tree_chunk(const NcclModel& model, const ChunkRequest& r) {
  const Constants& constants = model.version.constants;
  const std::int64_t start = constants.nvls_tree_by_buffer
                                 ? model.settings.step_bytes(Protocol::kSimple)
                                 : model.settings.nvls_chunk_bytes;
  const bool cut = constants.nvls_tree_cut && model.shape.n_nodes >= 4;
  const std::int64_t cap = model.settings.nvls_tree_max_chunk_bytes.value_or(cut ? 65536 : start);
  const std::int64_t parallel = r.channels * heads_of(model.shape, Algorithm::kNvlsTree);
  const Drop drops[] = {{32, 262144}, {16, 131072}, {4, 65536}, {1, 32768}};
  return drop(std::min(start, cap), r.bytes, parallel, drops);
}

// Enough chunks to fill the tree, in NCCL's single precision.
std::int64_t tree_ll128_chunk(const NcclModel& model, const ChunkRequest& r, std::int64_t chunk) {
  const float ppn = ranks_per_node_mean(model.shape);
  const float steps = static_cast<float>(1 + floor_log2(model.shape.n_nodes) + 0.1 * ppn);
  const auto chunks = [&] {
    const std::int64_t whole = r.bytes / (r.channels * chunk);
    return static_cast<float>(whole);
  };
  while (chunks() < steps * 64 / ppn && chunk > 131072) chunk /= 2;
  while (chunks() < steps * 16 / ppn && chunk > 32768) chunk /= 2;
  return chunk;
}

std::int64_t pat_chunk(const ChunkRequest& r, std::int64_t chunk) {
  const std::int64_t parallel = r.call.function == Function::kAllGather ? 32 : 16;
  while (chunk * r.channels * parallel > r.bytes && chunk > 65536) chunk /= 2;
  return chunk;
}

std::int64_t chunk_bytes(const NcclModel& model, const ChunkRequest& r, int chunk_steps) {
  const Protocol protocol = r.choice.protocol;
  std::int64_t chunk = model.settings.step_bytes(protocol) * chunk_steps;
  if (protocol == Protocol::kLl) chunk /= 2;
  if (protocol == Protocol::kLl128) chunk = chunk / 16 * 15;
  switch (r.choice.algorithm) {
    case Algorithm::kCollnetDirect:
      chunk = collnet_direct_chunk(model, r, chunk);
      break;
    case Algorithm::kCollnetChain:
      chunk = collnet_chain_chunk(model, r);
      break;
    case Algorithm::kNvls:
      chunk = nvls_chunk(model, r, chunk);
      break;
    case Algorithm::kNvlsTree:
      chunk = nvls_tree_chunk(model, r);
      break;
    case Algorithm::kTree:
      if (protocol == Protocol::kLl128) chunk = tree_ll128_chunk(model, r, chunk);
      break;
    case Algorithm::kPat:
      chunk = pat_chunk(r, chunk);
      break;
    case Algorithm::kRing:
      break;
  }
  const std::int64_t grain = kChunkGrain[index_of(protocol)];
  return std::max(grain, chunk / grain * grain);
}

// Steps and chunks of one loop (NCCL model §6.4).
void set_loop(const CommShape& shape, const ChunkRequest& r, ChunkPlan& plan) {
  const Algorithm algorithm = r.choice.algorithm;
  if (is_nvls(algorithm) || algorithm == Algorithm::kCollnetDirect) {
    plan.chunks_per_loop = heads_of(shape, algorithm);
  } else if (algorithm == Algorithm::kRing &&
             (r.call.function == Function::kAllReduce || is_gather(r.call.function))) {
    plan.steps_per_loop = ring_steps(r.call.function, shape.n_ranks);
    plan.chunks_per_loop = shape.n_ranks;
  }
}

std::int64_t last_chunk(const ChunkRequest& r, const ChunkPlan& plan) {
  const bool shrinks =
      r.choice.algorithm == Algorithm::kRing && r.call.function == Function::kAllReduce;
  if (!shrinks || plan.loops == 0) return plan.chunk_bytes;
  const std::int64_t loop_bytes = r.channels * plan.chunks_per_loop * plan.chunk_bytes;
  const std::int64_t rest = r.bytes - (plan.loops - 1) * loop_bytes;
  return std::min(plan.chunk_bytes, round_up(ceil_div(rest, plan.chunks_per_loop), 16));
}

}  // namespace

ChunkPlan plan_chunks(const NcclModel& model, const ChunkRequest& r) {
  const CommShape& shape = model.shape;
  const bool ring_simple =
      r.choice.algorithm == Algorithm::kRing && r.choice.protocol == Protocol::kSimple;
  const bool long_chunks =
      ring_simple && (r.call.function == Function::kAllReduce || is_gather(r.call.function));
  ChunkPlan plan;
  plan.chunk_steps = long_chunks ? 4 : 1;
  plan.slice_steps = long_chunks ? 2 : 1;
  plan.chunk_bytes = chunk_bytes(model, r, plan.chunk_steps);
  set_loop(shape, r, plan);
  // With buffers registered at the network, one rank per node sends them as they are.
  if (r.call.network_registered && r.choice.algorithm == Algorithm::kRing &&
      r.call.function == Function::kAllGather && shape.n_nodes == shape.n_ranks) {
    plan.chunk_bytes = kMaxNetworkMessage;
    plan.chunk_steps = 1;
    plan.slice_steps = 1;
  }
  plan.slice_bytes = plan.chunk_bytes / plan.chunk_steps * plan.slice_steps;
  plan.loops = ceil_div(r.bytes, r.channels * plan.chunks_per_loop * plan.chunk_bytes);
  plan.proxy_steps = plan.steps_per_loop * plan.loops * plan.chunk_steps;
  plan.last_chunk_bytes = last_chunk(r, plan);
  return plan;
}

}  // namespace rehearse::sim
