// SPDX-License-Identifier: Apache-2.0
// Nsight Systems exports, counted with python's sqlite3: a rank per globalPid of the GPU tables; kernels are
// the rows of CUPTI_ACTIVITY_KIND_KERNEL whose demangledName does not begin with "nccl", calls those that do;
// operations are these, copies, memsets, and of the same processes the rows of CUPTI_ACTIVITY_KIND_RUNTIME,
// CUPTI_ACTIVITY_KIND_OVERHEAD, PROFILER_OVERHEAD and the ranges (eventType 59 and 60 with an end) of
// NVTX_EVENTS.
#include <array>

#include "tests/traces/real_files.hpp"

namespace rehearse::traces::real {
namespace {

// clang-format off
constexpr auto kNsysFiles = std::to_array<File>({
    {"nsys/README.md", "", {}, "no known trace format"},
    {"nsys/h100_2gpu_1s.sqlite", "nsys", {2, 27144, 3442, 0, 904, 22, -1}, "rank-assumed"},
    {"nsys/healthy_1pct.sqlite", "nsys", {1, 800, 400, 0, 0, 0, 0}, "rank-assumed"},
    {"nsys/healthy_judged_1pct.sqlite", "nsys", {1, 40, 20, 0, 0, 0, 0}, "rank-assumed"},
    {"nsys/mfu_2gpu_after.sqlite", "nsys", {2, 28534, 3525, 62, 904, 242, -1}, "grouped-sends-as-all-to-all"},
    {"nsys/mfu_2gpu_before.sqlite", "nsys", {2, 31889, 3944, 66, 1020, 269, -1}, "grouped-sends-as-all-to-all"},
    {"nsys/mock.sqlite", "nsys", {1, 43, 2, 0, 1, 0, 0}},
    {"nsys/nvtxrun_2022.4.2.sqlite", "nsys", {1, 7, 0, 0, 0, 0, 1}, "no-gpu-work"},
    {"nsys/schema_2022.4.2.sql", "", {}, "no known trace format"},
    {"nsys/schema_all_2022.4.2.sqlite", "nsys", {1, 7, 0, 0, 0, 0, 1}, "no-gpu-work"},
});
// clang-format on

}  // namespace

std::span<const File> nsys_files() { return kNsysFiles; }

}  // namespace rehearse::traces::real
