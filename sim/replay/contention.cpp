// SPDX-License-Identifier: Apache-2.0
#include "sim/replay/contention.hpp"

#include <algorithm>

namespace rehearse::sim {

double rate_beside_calls(const traces::RankProgram& rank, std::span<const uint32_t> meeting_of,
                         std::span<const uint32_t> shape_of,
                         std::span<const DeclaredShape> shapes) {
  constexpr double kMost = 0.5;
  if (rank.calls.empty()) return 1;
  double sum = 0;
  for (uint32_t meeting : meeting_of) {
    const DeclaredShape& shape = shapes[shape_of[meeting]];
    sum += std::max(shape.sm_share, shape.memory_share);
  }
  return 1 - std::min(kMost, sum / static_cast<double>(meeting_of.size()));
}

}  // namespace rehearse::sim
