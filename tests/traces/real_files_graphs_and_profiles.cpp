// SPDX-License-Identifier: Apache-2.0
// Chakra traces, Horovod timelines and TensorFlow profiles. Counted by count_graph_and_profile_files.py.
#include <array>

#include "tests/traces/real_files.hpp"

namespace rehearse::traces::real {
namespace {

// clang-format off
constexpr auto kChakra = std::to_array<File>({
    {"chakra/README.md", "", {}, "no known trace format"},
    {"chakra/chakra.0.json.gz", "chakra", {1, 3664, 889, 7, 320, 0, -1}, "collective-without-size"},
    {"chakra/chakra.0.schema_1.0.1.et", "chakra", {1, 3664, 889, 7, 320, 0, -1}, "times-computed"},
    {"chakra/chakra.0.schema_1.1.0.et", "chakra", {1, 11347, 1549, 14, 54, 0, -1}, "streams-unknown"},
    {"chakra/small_chakra.0.json", "chakra", {1, 7, 1, 1, 0, 0, -1}, "times-computed"},
});
constexpr auto kHorovod = std::to_array<File>({
    {"horovod/README.md", "", {}, "no known trace format"},
    {"horovod/horovod_timeline_small.json", "horovod", {4, 23, 0, 0, 0, 0, -1}, "phase-without-end"},
    {"horovod/sagemaker_rotated_horovod_timeline.json", "horovod", {4, 20, 0, 0, 0, 0, -1}, "end-without-begin"},
});
constexpr auto kTensorflow = std::to_array<File>({
    {"tensorflow/README.md", "", {}, "no known trace format"},
    {"tensorflow/jax_conv_mi300_8gpu.xplane.pb", "xspace", {8, 3650, 235, 0, 0, 0, -1}, "rank-assumed"},
    {"tensorflow/jax_te_fused_attn.xplane.pb", "xspace", {1, 1992, 150, 0, 0, 0, -1}},
    {"tensorflow/tf2_cpu.trace.json.gz", "tensorboard", {1, 798, 0, 0, 0, 0, -1}, "no-gpu-work"},
    {"tensorflow/tf2_missing_metadata.trace.json.gz", "tensorboard", {1, 256, 0, 0, 0, 0, -1}, "no-gpu-work"},
});
// clang-format on

}  // namespace

std::span<const File> chakra_files() { return kChakra; }
std::span<const File> horovod_files() { return kHorovod; }
std::span<const File> tensorflow_files() { return kTensorflow; }

}  // namespace rehearse::traces::real
