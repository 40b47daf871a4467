// SPDX-License-Identifier: Apache-2.0
// Number and size of calls against closed forms, per rank over 2 steps.
#include <catch2/catch.hpp>

#include "synth_sample.hpp"

namespace rehearse::synth::synth_collectives_test {
namespace {

using traces::Collective;

constexpr int64_t kSteps = 2, kMicroBatches = 4, kLayers = 4;
constexpr Bytes kHidden = 512, kSequence = 256, kWords = 1024;
constexpr Bytes kActivation = kSequence * kHidden * 2;  // bf16
constexpr Bytes kLayerParameters = 12 * kHidden * kHidden + 13 * kHidden;
// Tied embedding, positions, layers, final normalisation.
constexpr Bytes kParameters =
    kWords * kHidden + kSequence * kHidden + kLayers * kLayerParameters + 2 * kHidden;

traces::Trace make(const pb::Synth& options) {
  auto trace = synthesize(options, sample_gpu());
  REQUIRE(trace);
  return std::move(*trace);
}

}  // namespace

TEST_CASE("DDP all-reduces every gradient once per step", "[traces][synth]") {
  pb::Synth options = small_gpt();
  options.set_dp(4);
  const auto counts = count_calls(make(options), 0);
  REQUIRE(counts.size() == 1);
  const auto& [key, count] = *counts.begin();
  CHECK(key == std::pair<std::string, Collective>{"dp", Collective::kAllReduce});
  CHECK(count.bytes == kSteps * kParameters * 2);
  CHECK(count.calls >= kSteps * 2);
}

TEST_CASE("ZeRO 1 reduce-scatters and gathers once per step, ZeRO 2 in every micro-batch",
          "[traces][synth]") {
  for (uint32_t zero : {1u, 2u}) {
    pb::Synth options = small_gpt();
    options.set_dp(4);
    options.set_zero(zero);
    auto counts = count_calls(make(options), 0);
    const int64_t rounds = zero == 1 ? kSteps : kSteps * kMicroBatches;
    CHECK(counts[{"dp", Collective::kReduceScatter}].bytes == rounds * kParameters * 2);
    CHECK(counts[{"dp", Collective::kAllGather}].bytes == kSteps * kParameters * 2);
    CHECK(counts[{"dp", Collective::kAllReduce}] == CallCount{kSteps, 4 * kSteps});  // norm
  }
}

TEST_CASE("FSDP gathers every unit twice and scatters it once per micro-batch", "[traces][synth]") {
  pb::Synth options = small_gpt();
  options.set_dp(4);
  options.set_zero(3);
  auto counts = count_calls(make(options), 3);
  const int64_t rounds = kSteps * kMicroBatches;
  const int64_t units = kLayers + 2;
  const Bytes untied = kParameters + kWords * kHidden;
  CHECK(counts[{"dp", Collective::kAllGather}] ==
        CallCount{2 * rounds * units, 2 * rounds * untied * 2});
  CHECK(counts[{"dp", Collective::kReduceScatter}] ==
        CallCount{rounds * units, rounds * untied * 2});
}

TEST_CASE("tensor parallelism all-reduces four activations per layer and micro-batch",
          "[traces][synth]") {
  pb::Synth options = small_gpt();
  options.set_tp(4);
  auto counts = count_calls(make(options), 1);
  const int64_t rounds = kSteps * kMicroBatches;
  // Besides the layers: embedding forward, logits backward; three small ones in the loss.
  const int64_t large = rounds * (4 * kLayers + 2);
  CHECK(counts[{"tp", Collective::kAllReduce}] ==
        CallCount{large + 3 * rounds, large * kActivation + 3 * rounds * kSequence * 4});
  CHECK(counts[{"mp", Collective::kAllReduce}] == CallCount{kSteps, 4 * kSteps});
}

TEST_CASE("pipeline stages pass each micro-batch on once in each direction", "[traces][synth]") {
  pb::Synth options = small_gpt();
  options.set_pp(4);
  const auto trace = make(options);
  const int64_t messages = kSteps * kMicroBatches;
  for (traces::RankId rank = 0; rank < 4; ++rank) {
    auto counts = count_calls(trace, rank);
    const int64_t neighbours = rank == 0 || rank == 3 ? 1 : 2;
    const CallCount expected{neighbours * messages, neighbours * messages * kActivation};
    CHECK(counts[{"pp", Collective::kSend}] == expected);
    CHECK(counts[{"pp", Collective::kRecv}] == expected);
    const bool tied = rank == 0 || rank == 3;
    const auto embedding = counts.find({"embedding", Collective::kAllReduce});
    CHECK((embedding != counts.end()) == tied);
    if (tied) CHECK(embedding->second == CallCount{kSteps, kSteps * kWords * kHidden * 2});
  }
}

TEST_CASE("interleaving sends once per chunk border", "[traces][synth]") {
  pb::Synth options = small_gpt();
  options.set_layers(8);
  options.set_pp(4);
  options.set_interleave(2);
  const auto trace = make(options);
  const int64_t messages = kSteps * kMicroBatches;
  const std::vector<int64_t> borders = {3, 4, 4, 3};  // forward and backward sends per micro-batch
  for (traces::RankId rank = 0; rank < 4; ++rank)
    CHECK(count_calls(trace, rank)[{"pp", Collective::kSend}].calls == messages * borders[rank]);
}

TEST_CASE("experts exchange tokens four times per layer and micro-batch", "[traces][synth]") {
  pb::Synth options = small_gpt();
  options.set_model("moe");
  options.set_dp(4);
  options.set_ep(2);
  options.set_experts(8);
  options.set_top_k(2);
  auto counts = count_calls(make(options), 0);
  const int64_t exchanges = kSteps * kMicroBatches * kLayers * 4;
  CHECK(counts[{"ep", Collective::kAllToAll}] == CallCount{exchanges, exchanges * kActivation * 2});
  const Bytes experts = kLayers * 8 * kHidden * kHidden * 4;  // 4 of 8 experts on this rank
  CHECK(counts[{"edp", Collective::kAllReduce}].bytes == kSteps * experts * 2);
  const Bytes dense = kParameters - kLayers * (8 * kHidden * kHidden + 5 * kHidden - 8 * kHidden);
  CHECK(counts[{"dp", Collective::kAllReduce}].bytes == kSteps * dense * 2);
}

TEST_CASE("DLRM exchanges indices, rows and row gradients once per step", "[traces][synth]") {
  pb::Synth options = named("dlrm");
  options.set_dp(4);
  options.set_tables(8);
  options.set_micro_batch(100);
  options.set_embedding(64);
  auto counts = count_calls(make(options), 2);
  CHECK(counts[{"world", Collective::kAllToAll}] ==
        CallCount{3 * kSteps, kSteps * (8 * 100 * 8 + 2 * 8 * 100 * 64 * 4)});
  Bytes parameters = 0;
  const std::vector<std::vector<Bytes>> mlps = {{13, 512, 256, 64}, {100, 1024, 1024, 512, 256, 1}};
  for (const auto& widths : mlps)
    for (size_t i = 0; i + 1 < widths.size(); ++i) parameters += (widths[i] + 1) * widths[i + 1];
  CHECK(counts[{"world", Collective::kAllReduce}].bytes == kSteps * parameters * 4);
}

TEST_CASE("Horovod fuses gradients from a background thread up to its threshold",
          "[traces][synth]") {
  pb::Synth options = named("resnet50");
  options.set_dp(4);
  options.set_framework("horovod");
  options.set_fusion(64 << 20);
  const auto trace = make(options);
  auto counts = count_calls(trace, 0);
  CHECK(counts[{"world", Collective::kAllReduce}].bytes == kSteps * 25'557'032 * 4);
  const auto& rank = trace.ranks[0];
  for (const traces::Call& call : rank.ops.calls) CHECK(call.bytes_in <= 64 << 20);
  int background = 0;
  for (size_t i = 0; i < rank.ops.size(); ++i)
    if (rank.ops.kind[i] == traces::OpKind::kHost &&
        trace.strings.at(rank.lanes[rank.ops.lane[i]].name) == "horovod background")
      ++background;
  CHECK(background == counts[{"world", Collective::kAllReduce}].calls);
}

TEST_CASE("TensorFlow issues everything from one thread to one NCCL stream", "[traces][synth]") {
  pb::Synth options = named("resnet50");
  options.set_dp(4);
  options.set_framework("tensorflow");
  const auto trace = make(options);
  CHECK(trace.ranks[0].lanes.size() == 3);
  CHECK(count_calls(trace, 0)[{"world", Collective::kAllReduce}].bytes == kSteps * 25'557'032 * 4);
}

TEST_CASE("a job of one rank has no communicators and no calls", "[traces][synth]") {
  const auto trace = make(small_gpt());
  CHECK(trace.ranks.size() == 1);
  CHECK(trace.communicators.empty());
  CHECK(trace.ranks[0].ops.calls.empty());
}

}  // namespace rehearse::synth::synth_collectives_test
