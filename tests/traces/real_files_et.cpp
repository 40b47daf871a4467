// SPDX-License-Identifier: Apache-2.0
// PyTorch execution traces, and the profiles beside them. Counted with python's json module by count_pytorch_files.py; steps -1: none are
// recorded.
#include <array>

#include "tests/traces/real_files.hpp"

namespace rehearse::traces::real {
namespace {

// clang-format off
constexpr auto kEtFiles = std::to_array<File>({
    {"et/1.0.2-chakra.0.0.4.json", "pytorch-et", {1, 10, 0, 10, 0, 0, -1}, "no-times"},
    {"et/README.md", "", {}, "no known trace format"},
    {"et/benchmark_simple_add_et.json.gz", "", {}, "no operation with a time"},
    {"et/benchmark_simple_add_kineto.json.gz", "kineto", {1, 55, 4, 0, 0, 0, -1}},
    {"et/hf_GPT2_et.json.gz", "", {}, "no operation with a time"},
    {"et/linear_et.json.gz", "", {}, "no operation with a time"},
    {"et/linear_kineto.json.gz", "kineto", {1, 61949, 8716, 0, 0, 1640, -1}},
    {"et/resnet_1gpu_et.json.gz", "pytorch-et", {1, 21, 0, 21, 0, 0, -1}, "no-times"},
    {"et/resnet_1gpu_et_1.0.3.json.gz", "pytorch-et", {1, 21, 0, 21, 0, 0, -1}, "no-times"},
    {"et/resnet_2gpu_et_1.1.0.json.gz", "pytorch-et", {1, 21, 0, 21, 0, 0, -1}, "no-times"},
    {"et/resnet_et.json.gz", "pytorch-et", {1, 21, 0, 21, 0, 0, -1}, "no-times"},
    {"et/resnet_kineto.json.gz", "kineto", {1, 75547, 9628, 0, 123, 362, -1}},
});
// clang-format on

}  // namespace

std::span<const File> execution_trace_files() { return kEtFiles; }

}  // namespace rehearse::traces::real
