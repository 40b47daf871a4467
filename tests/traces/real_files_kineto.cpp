// SPDX-License-Identifier: Apache-2.0
// PyTorch profiler files. Counted with python's json module by count_pytorch_files.py; steps -1: none are
// recorded.
#include <array>

#include "tests/traces/real_files.hpp"

namespace rehearse::traces::real {
namespace {

// clang-format off
constexpr auto kKinetoFiles = std::to_array<File>({
    {"kineto/README.md", "", {}, "no known trace format"},
    {"kineto/critical_path/alexnet_trace.json.gz", "kineto", {1, 826, 79, 0, 16, 3, -1}},
    {"kineto/critical_path/event_sync_multi_stream_trace.json.gz", "kineto", {1, 51, 3, 0, 0, 3, -1}},
    {"kineto/critical_path/event_sync_trace.json.gz", "kineto", {1, 28, 4, 0, 1, 0, 1}},
    {"kineto/critical_path/simple_add_expected_overlay.json.gz", "kineto", {1, 796, 79, 0, 16, 3, -1}},
    {"kineto/critical_path/simple_add_trace.json.gz", "kineto", {1, 796, 79, 0, 16, 3, -1}},
    {"kineto/ddp_resnet_a100_rank0of2/nccl_data.json.gz", "kineto", {1, 26902, 2679, 21, 960, 114, 3}},
    {"kineto/ddp_v100_rank1of2/df_index_resolver.json.gz", "kineto", {1, 150148, 17350, 2020, 2040, 880, 5}},
    {"kineto/dlrm_8rank_v100/et/dlrm_eg_0.json.gz", "pytorch-et", {1, 8, 0, 8, 0, 0, -1}, "no-times"},
    {"kineto/dlrm_8rank_v100/et/dlrm_eg_1.json.gz", "pytorch-et", {1, 8, 0, 8, 0, 0, -1}, "no-times"},
    {"kineto/dlrm_8rank_v100/et/dlrm_eg_2.json.gz", "pytorch-et", {1, 8, 0, 8, 0, 0, -1}, "no-times"},
    {"kineto/dlrm_8rank_v100/et/dlrm_eg_3.json.gz", "pytorch-et", {1, 8, 0, 8, 0, 0, -1}, "no-times"},
    {"kineto/dlrm_8rank_v100/et/dlrm_eg_4.json.gz", "pytorch-et", {1, 8, 0, 8, 0, 0, -1}, "no-times"},
    {"kineto/dlrm_8rank_v100/et/dlrm_eg_5.json.gz", "pytorch-et", {1, 8, 0, 8, 0, 0, -1}, "no-times"},
    {"kineto/dlrm_8rank_v100/et/dlrm_eg_6.json.gz", "pytorch-et", {1, 8, 0, 8, 0, 0, -1}, "no-times"},
    {"kineto/dlrm_8rank_v100/et/dlrm_eg_7.json.gz", "pytorch-et", {1, 8, 0, 8, 0, 0, -1}, "no-times"},
    {"kineto/dlrm_8rank_v100/kineto/worker0_step_12.1694128201545.pt.trace.json.gz", "kineto", {1, 2459, 237, 8, 16, 0, 1}},
    {"kineto/dlrm_8rank_v100/kineto/worker1_step_12.1694128201556.pt.trace.json.gz", "kineto", {1, 2526, 302, 8, 16, 0, 1}},
    {"kineto/dlrm_8rank_v100/kineto/worker2_step_12.1694128201554.pt.trace.json.gz", "kineto", {1, 2448, 238, 8, 16, 0, 1}},
    {"kineto/dlrm_8rank_v100/kineto/worker3_step_12.1694128201557.pt.trace.json.gz", "kineto", {1, 2551, 307, 8, 16, 6, 1}},
    {"kineto/dlrm_8rank_v100/kineto/worker4_step_12.1694128201547.pt.trace.json.gz", "kineto", {1, 2469, 243, 8, 16, 6, 1}},
    {"kineto/dlrm_8rank_v100/kineto/worker5_step_12.1694128201549.pt.trace.json.gz", "kineto", {1, 2439, 237, 8, 16, 0, 1}},
    {"kineto/dlrm_8rank_v100/kineto/worker6_step_12.1694128201553.pt.trace.json.gz", "kineto", {1, 2450, 238, 8, 16, 0, 1}},
    {"kineto/dlrm_8rank_v100/kineto/worker7_step_12.1694128201553.pt.trace.json.gz", "kineto", {1, 2439, 238, 8, 16, 0, 1}},
    {"kineto/format_2021/gpu_metrics_input.json", "kineto", {1, 253, 30, 0, 2, 0, -1}},
    {"kineto/format_2021/resnet50_num_workers_0.worker0.1623143566756.pt.trace.json.gz", "kineto", {1, 52885, 8772, 0, 12, 312, -1}},
    {"kineto/h100_single/Falconsai_nsfw_image_detection__1016002.json.gz", "kineto", {1, 4487, 154, 0, 0, 2, 1}},
    {"kineto/h100_single/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz", "kineto", {1, 14328, 1465, 0, 1, 241, 1}},
    {"kineto/h100_single/expected/Falconsai_nsfw_image_detection__1016002/GEMM.csv", "", {}, "no known trace format"},
    {"kineto/h100_single/expected/Falconsai_nsfw_image_detection__1016002/gpu_timeline.csv", "", {}, "no known trace format"},
    {"kineto/h100_single/expected/Falconsai_nsfw_image_detection__1016002/kernel_summary.csv", "", {}, "no known trace format"},
    {"kineto/h100_single/expected/Falconsai_nsfw_image_detection__1016002/ops_summary.csv", "", {}, "no known trace format"},
    {"kineto/h100_single/expected/Falconsai_nsfw_image_detection__1016002/ops_summary_by_category.csv", "", {}, "no known trace format"},
    {"kineto/h100_single/expected/Qwen_Qwen1.5-0.5B-Chat__1016005/GEMM.csv", "", {}, "no known trace format"},
    {"kineto/h100_single/expected/Qwen_Qwen1.5-0.5B-Chat__1016005/gpu_timeline.csv", "", {}, "no known trace format"},
    {"kineto/h100_single/expected/Qwen_Qwen1.5-0.5B-Chat__1016005/kernel_summary.csv", "", {}, "no known trace format"},
    {"kineto/h100_single/expected/Qwen_Qwen1.5-0.5B-Chat__1016005/ops_summary.csv", "", {}, "no known trace format"},
    {"kineto/h100_single/expected/Qwen_Qwen1.5-0.5B-Chat__1016005/ops_summary_by_category.csv", "", {}, "no known trace format"},
    {"kineto/h100_single/expected/facebook_timesformer-base-finetuned-k400__1016002/GEMM.csv", "", {}, "no known trace format"},
    {"kineto/h100_single/expected/facebook_timesformer-base-finetuned-k400__1016002/gpu_timeline.csv", "", {}, "no known trace format"},
    {"kineto/h100_single/expected/facebook_timesformer-base-finetuned-k400__1016002/kernel_summary.csv", "", {}, "no known trace format"},
    {"kineto/h100_single/expected/facebook_timesformer-base-finetuned-k400__1016002/ops_summary.csv", "", {}, "no known trace format"},
    {"kineto/h100_single/expected/facebook_timesformer-base-finetuned-k400__1016002/ops_summary_by_category.csv", "", {}, "no known trace format"},
    {"kineto/h100_single/expected/gaunernst_bert-small-uncased__1016001/GEMM.csv", "", {}, "no known trace format"},
    {"kineto/h100_single/expected/gaunernst_bert-small-uncased__1016001/gpu_timeline.csv", "", {}, "no known trace format"},
    {"kineto/h100_single/expected/gaunernst_bert-small-uncased__1016001/kernel_summary.csv", "", {}, "no known trace format"},
    {"kineto/h100_single/expected/gaunernst_bert-small-uncased__1016001/ops_summary.csv", "", {}, "no known trace format"},
    {"kineto/h100_single/expected/gaunernst_bert-small-uncased__1016001/ops_summary_by_category.csv", "", {}, "no known trace format"},
    {"kineto/h100_single/expected/google_owlv2-large-patch14-ensemble__1016001/GEMM.csv", "", {}, "no known trace format"},
    {"kineto/h100_single/expected/google_owlv2-large-patch14-ensemble__1016001/gpu_timeline.csv", "", {}, "no known trace format"},
    {"kineto/h100_single/expected/google_owlv2-large-patch14-ensemble__1016001/kernel_summary.csv", "", {}, "no known trace format"},
    {"kineto/h100_single/expected/google_owlv2-large-patch14-ensemble__1016001/ops_summary.csv", "", {}, "no known trace format"},
    {"kineto/h100_single/expected/google_owlv2-large-patch14-ensemble__1016001/ops_summary_by_category.csv", "", {}, "no known trace format"},
    {"kineto/h100_single/facebook_timesformer-base-finetuned-k400__1016002.json.gz", "kineto", {1, 48540, 446, 0, 2, 86, 1}},
    {"kineto/h100_single/gaunernst_bert-small-uncased__1016001.json.gz", "kineto", {1, 2276, 60, 0, 1, 0, 1}},
    {"kineto/h100_single/google_owlv2-large-patch14-ensemble__1016001.json.gz", "kineto", {1, 116427, 4330, 0, 85, 750, 1}},
    {"kineto/malformed/cpu_only_rank-34.Jul_15_10_52_41.1074.pt.trace.json.gz", "kineto", {1, 15, 0, 0, 0, 0, 1}},
    {"kineto/malformed/distributed_info_not_found.json.gz", "kineto", {1, 2467, 0, 0, 0, 0, 1}},
    {"kineto/malformed/inference_rank_1.json.gz", "kineto", {1, 12, 4, 0, 0, 0, -1}},
    {"kineto/malformed/rank_non_gpu.json.gz", "kineto", {1, 2467, 0, 0, 0, 0, 1}},
    {"kineto/malformed/rank_not_found.json.gz", "kineto", {1, 2467, 0, 0, 0, 0, 1}},
    {"kineto/other_vendors/mi210_gpu_only_trace.json.gz", "kineto", {1, 1193, 562, 0, 0, 0, -1}},
    {"kineto/other_vendors/mi250_minitoy_train_ROCm6_2_kineto.json.gz", "kineto", {1, 110, 14, 0, 2, 0, 2}},
    {"kineto/other_vendors/mi300_ddp_resnet18.json.gz", "kineto", {1, 20796, 2360, 0, 5, 10, -1}},
    {"kineto/other_vendors/mtia_inference_rank_0.json.gz", "kineto", {1, 14178, 1313, 0, 0, 0, -1}},
    {"kineto/other_vendors/mtia_rank_0.json.gz", "kineto", {1, 138370, 25814, 0, 0, 0, 1}},
    {"kineto/recsys_a100_rank0of16/rank0.json.gz", "kineto", {1, 67216, 6000, 80, 1390, 277, 5}},
    {"kineto/recsys_sampled_2of128/sampled_rank-0.json.gz", "kineto", {1, 4810, 1144, 10, 40, 10, 2}},
    {"kineto/recsys_sampled_2of128/sampled_rank-1.json.gz", "kineto", {1, 4675, 1094, 10, 40, 10, 2}},
    {"kineto/resnet_v100_world1_ns/rank-0.Apr_03_18_51_38.1102.pt.trace.json.gz", "kineto", {1, 45404, 4350, 0, 1600, 145, 5}},
    {"kineto/small/after_fix_trace.json", "kineto", {1, 6, 1, 0, 0, 0, -1}},
    {"kineto/small/backward_thread.json", "kineto", {1, 7, 1, 0, 0, 0, 1}},
    {"kineto/small/before_fix_trace.json", "kineto", {1, 6, 1, 0, 0, 0, -1}},
    {"kineto/small/cupti_range_profiler.json.gz", "kineto", {1, 2245, 0, 0, 0, 0, -1}},
    {"kineto/small/trace_compare_base.json.gz", "kineto", {1, 33, 6, 0, 6, 6, 2}},
    {"kineto/small/trace_compare_test.json.gz", "kineto", {1, 34, 5, 0, 6, 6, 2}},
    {"kineto/small/triton_example.json.gz", "kineto", {1, 7, 1, 0, 0, 0, 1}},
});
// clang-format on

}  // namespace

std::span<const File> kineto_files() { return kKinetoFiles; }

}  // namespace rehearse::traces::real
