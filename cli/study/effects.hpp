// SPDX-License-Identifier: Apache-2.0
// What a finished study says: which axis matters how much, and which points nobody beats. Pure functions.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "cli/study/plan.hpp"
#include "cli/study/row.hpp"

namespace rehearse::cli {

// The part of an axis in the differences of the objective between feasible points (sums of squares: the
// shares of all axes and pairs of a full product add up to at most 1).
struct Effect {
  std::vector<size_t> axes;  // one, or two for an interaction
  double share = 0;          // of the variance
  // Of one axis: the mean of the objective at each of its values, NaN where no point is feasible.
  std::vector<double> means;
};

// Axes first, in their order, then pairs, largest share first; pairs below 1 % are left out.
[[nodiscard]] std::vector<Effect> effects_of(const Plan& plan, const std::map<size_t, Row>& rows,
                                             const Goal& goal);

// Every combination of values is a feasible point, so that no axis stands for another. Where not, shares overlap and may add up
// to more than 1.
[[nodiscard]] bool is_full_product(const Plan& plan, const std::map<size_t, Row>& rows,
                                   const Goal& goal);

// Feasible points for which no other has both less of `first` and less of `second` (or one less and the other
// equal), by rising `first`. Of equal ones the first point.
[[nodiscard]] std::vector<size_t> pareto_front(const std::map<size_t, Row>& rows, const Goal& goal,
                                               const std::string& first, const std::string& second);

// Feasible points, best first; ties in order of points.
[[nodiscard]] std::vector<size_t> ranked(const std::map<size_t, Row>& rows, const Goal& goal);

}  // namespace rehearse::cli
