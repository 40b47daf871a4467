// SPDX-License-Identifier: Apache-2.0
// How much of each recorded kernel ran beside a collective of the same GPU. A kernel's recorded
// duration contains the slowdown of that overlap; a replay needs to know how much there was in
// order to change only what changes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "traces/program/program.hpp"

namespace rehearse::traces {

// By operation of `program`: share of a kernel's duration in 1/65535 during which a call was on
// another stream of the rank; 0 for what is no kernel. Empty when there is none. `source` names the
// recorded operation of each operation of the program.
[[nodiscard]] std::vector<uint16_t> recorded_overlap(const RankTrace& rank,
                                                     const RankProgram& program,
                                                     std::span<const uint32_t> source);

}  // namespace rehearse::traces
