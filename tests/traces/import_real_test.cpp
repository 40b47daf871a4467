// SPDX-License-Identifier: Apache-2.0
// Every real Kineto file and execution trace, against counts taken with python's json module.
#include <catch2/catch.hpp>
#include <iostream>

#include "tests/traces/import_samples.hpp"

using namespace rehearse;
using namespace rehearse::traces;
using samples::count_of;

namespace {

struct Expected {
  const char* file;
  size_t operations, kernels, calls, copies, memsets, steps;  // 0 operations: refused
};

// clang-format off
constexpr Expected kFiles[] = {
    {"kineto/critical_path/alexnet_trace.json.gz", 826, 79, 0, 16, 3, 0},
    {"kineto/critical_path/event_sync_multi_stream_trace.json.gz", 51, 3, 0, 0, 3, 0},
    {"kineto/critical_path/event_sync_trace.json.gz", 28, 4, 0, 1, 0, 1},
    {"kineto/critical_path/simple_add_expected_overlay.json.gz", 796, 79, 0, 16, 3, 0},
    {"kineto/critical_path/simple_add_trace.json.gz", 796, 79, 0, 16, 3, 0},
    {"kineto/ddp_resnet_a100_rank0of2/nccl_data.json.gz", 26902, 2679, 21, 960, 114, 3},
    {"kineto/ddp_v100_rank1of2/df_index_resolver.json.gz", 150148, 17350, 2020, 2040, 880, 5},
    {"kineto/dlrm_8rank_v100/et/dlrm_eg_0.json.gz", 8, 0, 8, 0, 0, 0},
    {"kineto/dlrm_8rank_v100/et/dlrm_eg_1.json.gz", 8, 0, 8, 0, 0, 0},
    {"kineto/dlrm_8rank_v100/et/dlrm_eg_2.json.gz", 8, 0, 8, 0, 0, 0},
    {"kineto/dlrm_8rank_v100/et/dlrm_eg_3.json.gz", 8, 0, 8, 0, 0, 0},
    {"kineto/dlrm_8rank_v100/et/dlrm_eg_4.json.gz", 8, 0, 8, 0, 0, 0},
    {"kineto/dlrm_8rank_v100/et/dlrm_eg_5.json.gz", 8, 0, 8, 0, 0, 0},
    {"kineto/dlrm_8rank_v100/et/dlrm_eg_6.json.gz", 8, 0, 8, 0, 0, 0},
    {"kineto/dlrm_8rank_v100/et/dlrm_eg_7.json.gz", 8, 0, 8, 0, 0, 0},
    {"kineto/dlrm_8rank_v100/kineto/worker0_step_12.1694128201545.pt.trace.json.gz", 2459, 237, 8, 16, 0, 1},
    {"kineto/dlrm_8rank_v100/kineto/worker1_step_12.1694128201556.pt.trace.json.gz", 2526, 302, 8, 16, 0, 1},
    {"kineto/dlrm_8rank_v100/kineto/worker2_step_12.1694128201554.pt.trace.json.gz", 2448, 238, 8, 16, 0, 1},
    {"kineto/dlrm_8rank_v100/kineto/worker3_step_12.1694128201557.pt.trace.json.gz", 2551, 307, 8, 16, 6, 1},
    {"kineto/dlrm_8rank_v100/kineto/worker4_step_12.1694128201547.pt.trace.json.gz", 2469, 243, 8, 16, 6, 1},
    {"kineto/dlrm_8rank_v100/kineto/worker5_step_12.1694128201549.pt.trace.json.gz", 2439, 237, 8, 16, 0, 1},
    {"kineto/dlrm_8rank_v100/kineto/worker6_step_12.1694128201553.pt.trace.json.gz", 2450, 238, 8, 16, 0, 1},
    {"kineto/dlrm_8rank_v100/kineto/worker7_step_12.1694128201553.pt.trace.json.gz", 2439, 238, 8, 16, 0, 1},
    {"kineto/format_2021/gpu_metrics_input.json", 253, 30, 0, 2, 0, 0},
    {"kineto/format_2021/resnet50_num_workers_0.worker0.1623143566756.pt.trace.json.gz", 52885, 8772, 0, 12, 312, 0},
    {"kineto/h100_single/Falconsai_nsfw_image_detection__1016002.json.gz", 4487, 154, 0, 0, 2, 1},
    {"kineto/h100_single/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz", 14328, 1465, 0, 1, 241, 1},
    {"kineto/h100_single/facebook_timesformer-base-finetuned-k400__1016002.json.gz", 48540, 446, 0, 2, 86, 1},
    {"kineto/h100_single/gaunernst_bert-small-uncased__1016001.json.gz", 2276, 60, 0, 1, 0, 1},
    {"kineto/h100_single/google_owlv2-large-patch14-ensemble__1016001.json.gz", 116427, 4330, 0, 85, 750, 1},
    {"kineto/malformed/cpu_only_rank-34.Jul_15_10_52_41.1074.pt.trace.json.gz", 15, 0, 0, 0, 0, 1},
    {"kineto/malformed/distributed_info_not_found.json.gz", 2467, 0, 0, 0, 0, 1},
    {"kineto/malformed/inference_rank_1.json.gz", 12, 4, 0, 0, 0, 0},
    {"kineto/malformed/rank_non_gpu.json.gz", 2467, 0, 0, 0, 0, 1},
    {"kineto/malformed/rank_not_found.json.gz", 2467, 0, 0, 0, 0, 1},
    {"kineto/other_vendors/mi210_gpu_only_trace.json.gz", 1193, 562, 0, 0, 0, 0},
    {"kineto/other_vendors/mi250_minitoy_train_ROCm6_2_kineto.json.gz", 110, 14, 0, 2, 0, 2},
    {"kineto/other_vendors/mi300_ddp_resnet18.json.gz", 20796, 2360, 0, 5, 10, 0},
    {"kineto/other_vendors/mtia_inference_rank_0.json.gz", 14178, 1313, 0, 0, 0, 0},
    {"kineto/other_vendors/mtia_rank_0.json.gz", 138370, 25814, 0, 0, 0, 1},
    {"kineto/recsys_a100_rank0of16/rank0.json.gz", 67216, 6000, 80, 1390, 277, 5},
    {"kineto/recsys_sampled_2of128/sampled_rank-0.json.gz", 4810, 1144, 10, 40, 10, 2},
    {"kineto/recsys_sampled_2of128/sampled_rank-1.json.gz", 4675, 1094, 10, 40, 10, 2},
    {"kineto/resnet_v100_world1_ns/rank-0.Apr_03_18_51_38.1102.pt.trace.json.gz", 45404, 4350, 0, 1600, 145, 5},
    {"kineto/small/after_fix_trace.json", 6, 1, 0, 0, 0, 0},
    {"kineto/small/backward_thread.json", 7, 1, 0, 0, 0, 1},
    {"kineto/small/before_fix_trace.json", 6, 1, 0, 0, 0, 0},
    {"kineto/small/cupti_range_profiler.json.gz", 2245, 0, 0, 0, 0, 0},
    {"kineto/small/trace_compare_base.json.gz", 33, 6, 0, 6, 6, 2},
    {"kineto/small/trace_compare_test.json.gz", 34, 5, 0, 6, 6, 2},
    {"kineto/small/triton_example.json.gz", 7, 1, 0, 0, 0, 1},
    {"et/1.0.2-chakra.0.0.4.json", 10, 0, 10, 0, 0, 0},
    {"et/benchmark_simple_add_et.json.gz", 0, 0, 0, 0, 0, 0},
    {"et/benchmark_simple_add_kineto.json.gz", 55, 4, 0, 0, 0, 0},
    {"et/hf_GPT2_et.json.gz", 0, 0, 0, 0, 0, 0},
    {"et/linear_et.json.gz", 0, 0, 0, 0, 0, 0},
    {"et/linear_kineto.json.gz", 61949, 8716, 0, 0, 1640, 0},
    {"et/resnet_1gpu_et.json.gz", 21, 0, 21, 0, 0, 0},
    {"et/resnet_1gpu_et_1.0.3.json.gz", 21, 0, 21, 0, 0, 0},
    {"et/resnet_2gpu_et_1.1.0.json.gz", 21, 0, 21, 0, 0, 0},
    {"et/resnet_et.json.gz", 21, 0, 21, 0, 0, 0},
    {"et/resnet_kineto.json.gz", 75547, 9628, 0, 123, 362, 0},
};
// clang-format on

}  // namespace

TEST_CASE("every real file has the operations that python counts in it", "[import][real]") {
  const auto data = samples::real_data();
  if (!data) {
    std::cout << "skipped: no real traces (REHEARSE_DATA)\n";
    return;
  }
  SilentReporter silent;
  for (const Expected& want : kFiles) {
    INFO(want.file);
    const auto got = import_files({*data / want.file}, {}, silent);
    if (want.operations == 0) {
      REQUIRE_FALSE(got);
      CHECK(got.error().code == Code::kBadInput);
      CHECK_FALSE(got.error().fix.empty());
      continue;
    }
    if (!got) FAIL_CHECK(got.error().message());
    if (!got) continue;
    REQUIRE(got->trace.ranks.size() == 1);
    const RankTrace& rank = got->trace.ranks[0];
    CHECK(rank.ops.size() == want.operations);
    CHECK(count_of(rank, OpKind::kKernel) == want.kernels);
    CHECK(count_of(rank, OpKind::kCall) == want.calls);
    CHECK(count_of(rank, OpKind::kCopy) == want.copies);
    CHECK(count_of(rank, OpKind::kMemset) == want.memsets);
    if (want.steps > 0) CHECK(rank.steps.size() == want.steps);
    for (size_t op = 1; op < rank.ops.size(); ++op) {
      if (rank.ops.start[op - 1] > rank.ops.start[op]) FAIL_CHECK("operations are not in order");
    }
  }
}

TEST_CASE("eight ranks of DLRM become eight collectives of eight ranks with sizes",
          "[import][real]") {
  const auto data = samples::real_data();
  if (!data) {
    std::cout << "skipped: no real traces (REHEARSE_DATA)\n";
    return;
  }
  SilentReporter silent;
  const auto got = import_files({*data / "kineto/dlrm_8rank_v100"}, {}, silent);
  if (!got) FAIL(got.error().message());
  const Trace& trace = got->trace;
  REQUIRE(trace.ranks.size() == 8);
  CHECK(trace.header.world_size() == 8);
  REQUIRE(trace.communicators.size() == 1);
  CHECK(trace.communicators[0].members.size() == 8);
  // Kind, bytes in; bytes out of the uneven exchange differ by rank.
  const std::vector<std::pair<Collective, Bytes>> order = {
      {Collective::kAllToAll, 6144 * 4},    {Collective::kAllToAll, 24 * 8},
      {Collective::kAllToAll, 384 * 4},     {Collective::kAllToAll, 3392 * 4},
      {Collective::kAllReduce, 394241 * 4}, {Collective::kAllToAll, 6144 * 4},
      {Collective::kAllReduce, 112 * 4},    {Collective::kAllReduce, 226960 * 4}};
  const std::vector<Bytes> uneven = {96, 224, 288, 1664, 592, 96, 192, 240};
  for (const RankTrace& rank : trace.ranks) {
    REQUIRE(rank.ops.calls.size() == 8);
    for (const Call& call : rank.ops.calls) {
      const auto& [kind, bytes] = order.at(static_cast<size_t>(call.sequence));
      CHECK(call.collective == kind);
      CHECK(call.bytes_in == bytes);
      CHECK(call.bytes_out == (call.sequence == 3 ? uneven[rank.rank] * 8 * 4 : bytes));
    }
    REQUIRE(rank.steps.size() == 1);
    CHECK(rank.steps[0].number == 10);
    CHECK(rank.gpu_model == "Tesla V100-SXM2-32GB");
  }
  CHECK(trace.ranks[3].steps[0].end - trace.ranks[3].steps[0].start == 19'313'000);
  CHECK(got->findings.count("collective-without-size") == 0);
  CHECK(got->findings.count("execution-trace-mismatch") == 0);
  CHECK(got->findings.count("collective-mismatch") == 0);
  CHECK(got->findings.count("ranks-missing") == 0);
  CHECK(trace.header.clock_residual() <= 7'000);
}

TEST_CASE("a real trace cut at every hundredth is refused, or accepted and marked",
          "[import][real]") {
  const auto data = samples::real_data();
  if (!data) {
    std::cout << "skipped: no real traces (REHEARSE_DATA)\n";
    return;
  }
  auto source = Source::open(*data / "kineto/critical_path/alexnet_trace.json.gz", {});
  REQUIRE(source);
  std::string text(1 << 20, '\0');
  size_t size = 0;
  while (size < text.size()) {
    const auto got = source->read(std::span(text).subspan(size));
    REQUIRE(got);
    if (*got == 0) break;
    size += *got;
  }
  text.resize(size);
  size_t last = 0;
  for (size_t percent = 1; percent < 100; ++percent) {
    const std::string cut = text.substr(0, text.size() * percent / 100);
    INFO(percent << " %");
    CHECK_FALSE(samples::import_text(cut));
    const auto taken = samples::import_text(cut, {.cut_files = CutFiles::kAccept});
    if (!taken) continue;
    CHECK(taken->findings.count("file-cut") == 1);
    CHECK(taken->trace.operations() >= last);
    last = taken->trace.operations();
  }
  CHECK(last > 700);
}
