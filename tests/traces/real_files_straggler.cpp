// SPDX-License-Identifier: Apache-2.0
// Tables of the straggler study, counted with python's csv module: a rank per value of the rank column; kernels
// are rows of forward-compute, backward-compute, optimizer and layernorm-grads-all-reduce, calls the other rows
// but gc; operations are all rows, and two more (launch and wait) for each row that is not gc; steps are the
// values of the step column.
#include <array>

#include "tests/traces/real_files.hpp"

namespace rehearse::traces::real {
namespace {

// clang-format off
constexpr auto kStragglerFiles = std::to_array<File>({
    {"straggler/README.md", "", {}, "no known trace format"},
    {"straggler/SE/ideal-timeline-SE.json.gz", "", {}, "is an operation"},
    {"straggler/SE/meta-SE.yaml", "", {}, "no operation with a time"},
    {"straggler/SE/ms-SE.json", "", {}, "no known trace format"},
    {"straggler/SE/mw-SE.json", "", {}, "no known trace format"},
    {"straggler/SE/result-SE.json", "", {}, "no known trace format"},
    {"straggler/SE/timeline-SE.json.gz", "", {}, "is an operation"},
    {"straggler/SE/trace-SE.csv.gz", "csv", {64, 316480, 49536, 55040, 0, 0, 43}, "steps-laid-out"},
    {"straggler/ST/ideal-timeline-ST.json.gz", "", {}, "is an operation"},
    {"straggler/ST/meta-ST.yaml", "", {}, "no operation with a time"},
    {"straggler/ST/ms-ST.json", "", {}, "no known trace format"},
    {"straggler/ST/mw-ST.json", "", {}, "no known trace format"},
    {"straggler/ST/result-ST.json", "", {}, "no known trace format"},
    {"straggler/ST/timeline-ST.json.gz", "", {}, "is an operation"},
    {"straggler/ST/trace-ST.csv.gz", "csv", {8, 19840, 2560, 3968, 0, 0, 32}, "steps-laid-out"},
});
// clang-format on

}  // namespace

std::span<const File> straggler_files() { return kStragglerFiles; }

}  // namespace rehearse::traces::real
