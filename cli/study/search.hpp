// SPDX-License-Identifier: Apache-2.0
// Finds a good point of a study without computing all of them: points spread over the space first, then those
// that a guess from all known ones expects to be better than the best (cli/study/surrogate.hpp).
// Deterministic for a seed.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "base/error.hpp"
#include "cli/study/plan.hpp"

namespace rehearse::cli {

// Costs of points (less is better; nullopt: not feasible), in the order asked for.
using Evaluate =
    std::function<Result<std::vector<std::optional<double>>>(std::span<const size_t> points)>;

// The points that were evaluated, in order; at most `budget` of them.
[[nodiscard]] Result<std::vector<size_t>> search(const Plan& plan, size_t budget, uint64_t seed,
                                                 const Evaluate& evaluate);

}  // namespace rehearse::cli
