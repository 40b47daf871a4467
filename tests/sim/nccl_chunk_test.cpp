// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/nccl_fixture.hpp"

namespace rehearse::nccl_chunk_test {
using namespace rehearse::sim;
using namespace rehearse::sim::testing;

namespace {

constexpr auto kAr = Function::kAllReduce;
constexpr auto kSimple = Protocol::kSimple;
constexpr std::int64_t kGib = std::int64_t{1} << 30;

ChunkPlan chunks(const NcclModel& model, const Call& call, Algorithm a, Protocol p = kSimple) {
  return plan_chunks(model, {call, {a, p, 0, 1, 512}, total_bytes(call, model.shape.n_ranks), 1});
}

}  // namespace

TEST_CASE("ring chunks are four slots of SIMPLE and one of LL", "[nccl][chunk]") {
  const NcclModel model = model_of(nodes_of(1, 8));
  const ChunkPlan simple = chunks(model, call_of(kAr, kGib / 4), Algorithm::kRing);
  CHECK(simple.chunk_bytes == 2 << 20);
  CHECK(simple.slice_bytes == 1 << 20);
  CHECK(simple.loops == 64);
  CHECK(simple.proxy_steps == 14 * 64 * 4);
  const Call broadcast = call_of(Function::kBroadcast, kGib / 4);
  CHECK(chunks(model, broadcast, Algorithm::kRing).chunk_bytes == 524288);
  CHECK(chunks(model, broadcast, Algorithm::kRing).proxy_steps == 2048);
  CHECK(chunks(model, call_of(kAr, 64), Algorithm::kRing, Protocol::kLl).chunk_bytes == 32768);
  CHECK(chunks(model, call_of(kAr, 64), Algorithm::kRing, Protocol::kLl128).chunk_bytes ==
        614400 / 16 * 15 / 1920 * 1920);
}

TEST_CASE("buffer sizes of the environment change the chunks", "[nccl][chunk]") {
  const NcclModel model = model_of(nodes_of(1, 8), {{"NCCL_BUFFSIZE", "1048576"},
                                                    {"NCCL_LL_BUFFSIZE", "0x40000"},
                                                    {"NCCL_LL128_BUFFSIZE", "245760"}});
  const Call call = call_of(kAr, 1 << 20);
  CHECK(chunks(model, call, Algorithm::kRing).chunk_bytes == 524288);
  CHECK(chunks(model, call, Algorithm::kRing, Protocol::kLl).chunk_bytes == 16384);
  CHECK(chunks(model, call, Algorithm::kRing, Protocol::kLl128).chunk_bytes == 28800);
}

TEST_CASE("the last loop of a ring AllReduce shrinks its chunk", "[nccl][chunk]") {
  const NcclModel model = model_of(nodes_of(1, 8));
  const std::int64_t loop = 8 * (2 << 20);
  const ChunkPlan plan =
      chunks(model, call_of(kAr, loop + 8 * 1000 + 1, DataType::kInt8), Algorithm::kRing);
  CHECK(plan.loops == 2);
  CHECK(plan.last_chunk_bytes == 1008);
  const ChunkPlan full = chunks(model, call_of(kAr, loop, DataType::kInt8), Algorithm::kRing);
  CHECK(full.loops == 1);
  CHECK(full.last_chunk_bytes == full.chunk_bytes);
}

TEST_CASE("NVLS between nodes takes small chunks below 150 GB/s", "[nccl][chunk]") {
  CommShape shape = with_collnet(nodes_of(2, 8));
  shape.nvls = graph(8, 15, 15);
  const Call call = call_of(kAr, kGib);
  const NcclModel slow = model_of(shape);
  CHECK(cost(slow, kAr, Algorithm::kNvls, kSimple).bandwidth_gbps < 150);
  CHECK(chunks(slow, call, Algorithm::kNvls).chunk_bytes == 32768);
  shape.nvls = graph(8, 40, 40);
  const NcclModel fast = model_of(shape);
  CHECK(cost(fast, kAr, Algorithm::kNvls, kSimple).bandwidth_gbps >= 150);
  CHECK(chunks(fast, call, Algorithm::kNvls).chunk_bytes == 131072);
  CHECK(chunks(model_of(shape, {{"NCCL_NVLS_CHUNKSIZE", "65536"}}), call, Algorithm::kNvls)
            .chunk_bytes == 65536);
}

TEST_CASE("NVLS chunks drop as the data gets small", "[nccl][chunk]") {
  const NcclModel model = model_of(nodes_of(1, 8));
  const auto chunk = [&](std::int64_t bytes) {
    return chunks(model, call_of(kAr, bytes, DataType::kInt8), Algorithm::kNvls).chunk_bytes;
  };
  CHECK(chunk(64 * 8 * 131072) == 131072);
  CHECK(chunk(64 * 8 * 131072 - 1) == 65536);
  CHECK(chunk(8 * 8 * 65536) == 65536);
  CHECK(chunk(8 * 8 * 65536 - 1) == 32768);
  CHECK(chunk(2 * 8 * 32768 - 1) == 16384);
}

TEST_CASE("NVLS_TREE chunks may grow and drop by steps", "[nccl][chunk]") {
  const auto chunk = [](const NcclModel& model, std::int64_t loops_of_8_mib) {
    return chunks(model, call_of(kAr, loops_of_8_mib * (8 << 20), DataType::kInt8),
                  Algorithm::kNvlsTree)
        .chunk_bytes;
  };
  const NcclModel two = model_of(nodes_of(2, 8), {{"NCCL_NVLS_CHUNKSIZE", "1048576"}});
  CHECK(chunk(two, 32) == 1048576);
  CHECK(chunk(two, 31) == 262144);
  CHECK(chunk(two, 3) == 131072);  // 24 MiB < 16 loops of 2 MiB
  CHECK(chunk(model_of(nodes_of(2, 8)), 32) == 131072);
  CHECK(chunk(model_of(nodes_of(4, 8)), 32) == 65536);
  const NcclModel capped = model_of(nodes_of(4, 8), {{"NCCL_NVLSTREE_MAX_CHUNKSIZE", "131072"}});
  CHECK(chunk(capped, 32) == 131072);
}

TEST_CASE("registered buffers take whole slots and whole messages", "[nccl][chunk]") {
  Call gather = call_of(Function::kAllGather, 1 << 20);
  gather.nvls_registered = true;
  const NcclModel node = model_of(nodes_of(1, 8));
  CHECK(chunks(node, gather, Algorithm::kNvls).chunk_bytes == 524288);
  gather.function = kAr;
  CHECK(chunks(node, gather, Algorithm::kNvls).chunk_bytes < 524288);

  Call network = call_of(Function::kAllGather, kGib / 2);
  network.network_registered = true;
  const ChunkPlan plan = chunks(model_of(nodes_of(4, 1)), network, Algorithm::kRing);
  CHECK(plan.chunk_bytes == kGib);
  CHECK(plan.chunk_steps == 1);
  CHECK(plan.loops == 2);
  CHECK(plan.proxy_steps == 2 * 3);
  CHECK(chunks(model_of(nodes_of(2, 2)), network, Algorithm::kRing).chunk_bytes == 2 << 20);
}

TEST_CASE("PAT and tree LL128 halve their chunks for small data", "[nccl][chunk]") {
  const NcclModel model = model_of(nodes_of(8, 1));
  const Call gather = call_of(Function::kAllGather, 1 << 18);  // 8 MiB in all
  CHECK(chunks(model, gather, Algorithm::kPat).chunk_bytes == 262144);
  const Call scatter = call_of(Function::kReduceScatter, 1 << 18);
  CHECK(chunks(model, scatter, Algorithm::kPat).chunk_bytes == 524288);
  CHECK(chunks(model, call_of(kAr, 64), Algorithm::kTree, Protocol::kLl128).chunk_bytes ==
        17280);  // 576000 halved five times, rounded down to the grain
}

TEST_CASE("CollNet halves its chunks until there are enough of them", "[nccl][chunk]") {
  CommShape shape = nodes_of(2, 8);
  shape.collnet_depth = 2;
  shape.collnet_heads = 4;
  const NcclModel model = model_of(shape);
  const auto chunk = [&](Algorithm algorithm, std::int64_t bytes) {
    return chunks(model, call_of(kAr, bytes, DataType::kInt8), algorithm).chunk_bytes;
  };
  // Direct: 64 for each level of its tree, on each of its heads; then 8, down to 32 KiB.
  constexpr std::int64_t kWhole = 524288;
  CHECK(chunk(Algorithm::kCollnetDirect, 4 * kWhole * 128) == kWhole);
  CHECK(chunk(Algorithm::kCollnetDirect, 4 * kWhole * 128 - 1) == kWhole / 2);
  CHECK(chunk(Algorithm::kCollnetDirect, 4 * kWhole / 4 * 16) == kWhole / 4);
  CHECK(chunk(Algorithm::kCollnetDirect, 4 * kWhole / 4 * 16 - 1) == kWhole / 8);
  CHECK(chunk(Algorithm::kCollnetDirect, 4 * kWhole / 8 * 16 - 1) == kWhole / 16);
  CHECK(chunk(Algorithm::kCollnetDirect, 1) == kWhole / 16);
  // Chain: as many as ranks of a node, times 64, 8 and 1; it begins with 256 KiB.
  constexpr std::int64_t kHalf = kWhole / 2;
  CHECK(chunk(Algorithm::kCollnetChain, kHalf * 512) == kHalf);
  CHECK(chunk(Algorithm::kCollnetChain, kHalf * 512 - 1) == kHalf / 2);
  CHECK(chunk(Algorithm::kCollnetChain, kHalf / 2 * 64) == kHalf / 2);
  CHECK(chunk(Algorithm::kCollnetChain, kHalf / 2 * 64 - 1) == kHalf / 4);
  CHECK(chunk(Algorithm::kCollnetChain, kHalf / 4 * 8) == kHalf / 4);
  CHECK(chunk(Algorithm::kCollnetChain, kHalf / 4 * 8 - 1) == kHalf / 8);
}

}  // namespace rehearse::nccl_chunk_test
