// SPDX-License-Identifier: Apache-2.0
// The rank that a file's name tells. Pure.
#pragma once

#include <optional>
#include <string_view>

#include "traces/model/trace.hpp"

namespace rehearse::traces {

// "rank-3.json", "worker12_step_4.json.gz", "trace_8_rank_1.json": the last number after "rank",
// else the last after "worker".
[[nodiscard]] std::optional<RankId> rank_of_name(std::string_view path);

}  // namespace rehearse::traces
