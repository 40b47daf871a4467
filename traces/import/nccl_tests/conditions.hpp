// SPDX-License-Identifier: Apache-2.0
// Under which conditions rows were measured, as far as a file tells: what it does not say is taken
// from what NCCL logged beside, from the name of the file, or from the columns, and marked so.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/finding.hpp"
#include "traces/import/nccl_tests/table_builder.hpp"
#include "traces/proto/evidence.pb.h"

namespace rehearse::traces::nccl_tests {

// 22902 -> "2.29.2", 2804 -> "2.8.4".
[[nodiscard]] std::string version_of_number(int number);
// The collective that the name of a file names, "" for none.
[[nodiscard]] std::string collective_of_file(std::string_view name);

// Completes the runs of one file and joins those that differ in nothing but sizes. `log` may be
// null; `run_of` tells the run of each of its communicators.
[[nodiscard]] pb::MeasuredTables to_tables(std::vector<Run> runs, const pb::NcclLog* log,
                                           const std::vector<uint32_t>& run_of,
                                           const std::string& file, Findings& findings);

}  // namespace rehearse::traces::nccl_tests
