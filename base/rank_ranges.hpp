// SPDX-License-Identifier: Apache-2.0
// Ranks as people write them: "0-7,16". Pure.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/error.hpp"

namespace rehearse {

struct RankRange {
  uint32_t first = 0, last = 0;  // both inclusive

  [[nodiscard]] bool holds(uint32_t rank) const { return rank >= first && rank <= last; }
};

// In the order written. kBadInput for anything else, with the part that is wrong.
[[nodiscard]] Result<std::vector<RankRange>> parse_rank_ranges(std::string_view text);

}  // namespace rehearse
