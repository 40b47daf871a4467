// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <functional>

#include "synth_sample.hpp"

namespace rehearse::synth::synth_options_test {
namespace {

struct Refusal {
  const char* model;
  std::function<void(pb::Synth&)> change;
  Code code;
  const char* where;
};

}  // namespace

TEST_CASE("a model alone gets every default", "[traces][synth]") {
  for (const char* model : {"gpt", "moe", "resnet50", "dlrm"}) {
    INFO(model);
    const auto full = complete(named(model));
    REQUIRE(full);
    CHECK(full->gpu() == "h100-sxm5");
    CHECK(full->steps() == 2);
    CHECK(full->dp() == 8);
    CHECK(full->jitter() == 0.02);
    CHECK(full->bucket() == 25 << 20);
    CHECK(full->first_bucket() == 1 << 20);
    CHECK(full->framework() == "pytorch");
  }
  CHECK(complete(named("gpt"))->sequence() == 2048);
  CHECK(complete(named("gpt"))->micro_batches() == 8);
  CHECK(complete(named("dlrm"))->tables() == 32);
}

TEST_CASE("completing complete options changes nothing", "[traces][synth]") {
  for (const char* model : {"gpt", "moe", "resnet50", "dlrm"}) {
    const auto once = complete(named(model));
    REQUIRE(once);
    CHECK(complete(*once)->SerializeAsString() == once->SerializeAsString());
  }
}

TEST_CASE("an explicit jitter of 0 is kept", "[traces][synth]") {
  pb::Synth options = named("gpt");
  options.set_jitter(0);
  CHECK(complete(options)->jitter() == 0);
}

TEST_CASE("options that contradict each other are refused with the field and a fix",
          "[traces][synth]") {
  const std::vector<Refusal> refusals = {
      {"", [](auto&) {}, Code::kUsage, "model"},
      {"gtp", [](auto&) {}, Code::kBadInput, "model"},
      {"resnet50", [](auto& o) { o.set_layers(12); }, Code::kBadInput, "layers"},
      {"gpt", [](auto& o) { o.set_tables(8); }, Code::kBadInput, "tables"},
      {"dlrm", [](auto& o) { o.set_top_k(2); }, Code::kBadInput, "top_k"},
      {"resnet50", [](auto& o) { o.set_cycle(1000); }, Code::kBadInput, "cycle"},
      {"gpt", [](auto& o) { o.set_layers(23), o.set_pp(2); }, Code::kBadInput, "layers"},
      {"gpt",
       [](auto& o) { o.set_layers(24), o.set_pp(4), o.set_interleave(5), o.set_micro_batches(8); },
       Code::kBadInput, "layers"},
      {"gpt", [](auto& o) { o.set_pp(2), o.set_interleave(2); }, Code::kBadInput, "interleave"},
      {"gpt", [](auto& o) { o.set_pp(4), o.set_interleave(2), o.set_micro_batches(6); },
       Code::kBadInput, "micro_batches"},
      {"gpt", [](auto& o) { o.set_heads(16), o.set_tp(3); }, Code::kBadInput, "heads"},
      {"gpt", [](auto& o) { o.set_hidden(1000), o.set_heads(16); }, Code::kBadInput, "hidden"},
      {"gpt", [](auto& o) { o.set_experts(8); }, Code::kBadInput, "experts"},
      {"gpt", [](auto& o) { o.set_zero(4); }, Code::kBadInput, "zero"},
      {"gpt", [](auto& o) { o.set_jitter(2); }, Code::kBadInput, "jitter"},
      {"gpt", [](auto& o) { o.set_jitter(std::numeric_limits<double>::quiet_NaN()); },
       Code::kBadInput, "jitter"},
      {"gpt", [](auto& o) { o.set_dtype("int3"); }, Code::kBadInput, "dtype"},
      {"gpt", [](auto& o) { o.set_framework("mxnet"); }, Code::kBadInput, "framework"},
      {"gpt", [](auto& o) { o.set_framework("horovod"), o.set_tp(2); }, Code::kBadInput,
       "tp, pp, ep, zero, interleave"},
      {"gpt", [](auto& o) { o.set_dp(1024), o.set_tp(8), o.set_pp(16); }, Code::kLimit,
       "dp, tp, pp"},
      {"gpt", [](auto& o) { o.set_dp(4'000'000'000u), o.set_tp(4'000'000'000u); }, Code::kLimit,
       "dp, tp, pp"},
      {"gpt", [](auto& o) { o.set_steps(1'000'000); }, Code::kLimit,
       "steps, micro_batches, layers"},
      {"gpt", [](auto& o) { o.set_hidden(1 << 30), o.set_heads(1); }, Code::kLimit,
       "micro_batch, sequence, hidden, vocabulary, tables, embedding"},
      {"moe", [](auto& o) { o.set_experts(12), o.set_ep(8); }, Code::kBadInput, "experts"},
      {"moe", [](auto& o) { o.set_dp(6), o.set_ep(4); }, Code::kBadInput, "dp"},
      {"moe", [](auto& o) { o.set_experts(8), o.set_top_k(9); }, Code::kBadInput, "top_k"},
      {"moe", [](auto& o) { o.set_zero(3); }, Code::kBadInput, "zero"},
      {"resnet50", [](auto& o) { o.set_tp(2); }, Code::kBadInput, "tp, pp, ep, zero, interleave"},
      {"resnet50", [](auto& o) { o.set_bucket(-1); }, Code::kBadInput,
       "bucket, first_bucket, fusion, cycle"},
      {"dlrm", [](auto& o) { o.set_dp(8), o.set_tables(26); }, Code::kBadInput, "tables"},
      {"dlrm", [](auto& o) { o.set_dp(1), o.set_tables(4'000'000'000u); }, Code::kLimit,
       "micro_batch, sequence, hidden, vocabulary, tables, embedding"},
  };
  for (const Refusal& refusal : refusals) {
    pb::Synth options = named(refusal.model);
    refusal.change(options);
    INFO(options.ShortDebugString());
    const auto result = complete(options);
    REQUIRE_FALSE(result);
    CHECK(result.error().code == refusal.code);
    CHECK(result.error().where == refusal.where);
    CHECK_FALSE(result.error().fix.empty());
  }
}

TEST_CASE("65,536 ranks are still accepted", "[traces][synth]") {
  pb::Synth options = named("gpt");
  options.set_dp(512);
  options.set_tp(8);
  options.set_pp(12);
  CHECK(complete(options));
  options.set_pp(16);
  options.set_layers(32);
  CHECK(complete(options));
}

TEST_CASE("a GPU without a rate for the dtype is refused", "[traces][synth]") {
  pb::Gpu gpu = sample_gpu();
  gpu.mutable_flops()->clear_bf16();
  const auto result = synthesize(small_gpt(), gpu);
  REQUIRE_FALSE(result);
  CHECK(result.error().code == Code::kBadInput);
  CHECK(result.error().what.find("bf16") != std::string::npos);
  gpu = sample_gpu();
  gpu.clear_memory_bandwidth();
  CHECK_FALSE(synthesize(small_gpt(), gpu));
}

}  // namespace rehearse::synth::synth_options_test
