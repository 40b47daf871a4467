// SPDX-License-Identifier: Apache-2.0
// A guess at the costs of points of a study from those that are known, and which point is worth computing next: a
// Gaussian process with the expected improvement over the best one known. Costs go in as ranks, so neither
// their unit nor an outlier matters. Pure; the same input gives the same answer.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "cli/study/plan.hpp"

namespace rehearse::cli {

struct KnownPoint {
  size_t point = 0;
  std::optional<double> cost;  // less is better; nullopt: not feasible, so worse than all others
};

// `count` of the candidates, the most promising first; fewer when there are fewer. Each is chosen as if the ones
// before it had turned out as guessed, so that they do not crowd. Takes O(candidates * known^2); at least one
// known point must be feasible.
[[nodiscard]] std::vector<size_t> most_promising(const Plan& plan,
                                                 const std::vector<KnownPoint>& known,
                                                 const std::vector<size_t>& candidates,
                                                 size_t count);

}  // namespace rehearse::cli
