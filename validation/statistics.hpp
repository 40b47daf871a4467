// SPDX-License-Identifier: Apache-2.0
// The few figures that say how far predictions are from measurements. Pure functions; the interval
// draws from base/random.hpp, so that equal input gives equal output.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace rehearse::validation {

// Of ascending values, between neighbours in proportion; 0 of none. `q` in [0, 1].
[[nodiscard]] double quantile(const std::vector<double>& sorted, double q);
// Of values in any order.
[[nodiscard]] double quantile_of(std::vector<double> values, double q);

// Errors of some rows.
struct ErrorSummary {
  size_t rows = 0;
  double median = 0;  // of absolute errors
  double p90 = 0;
  double bias = 0;  // median of signed errors
};
[[nodiscard]] ErrorSummary summarise(std::vector<double> signed_errors);

// 95 % interval of the median absolute error, by drawing groups with replacement: rows of one group
// (repeats, sizes of one table) are not independent. It holds the median of all rows. None with fewer than
// kFewestGroups: so few say nothing of what others would be.
struct Interval {
  double low = 0;
  double high = 0;
};
constexpr size_t kFewestGroups = 5;
struct GroupedError {
  std::string group;
  double error = 0;
};
[[nodiscard]] std::optional<Interval> median_interval(const std::vector<GroupedError>& errors);

// Kendall's tau-b of two rankings of equal length: 1 the same order, -1 the reverse, ties counted in
// neither. 0 when either is all ties.
[[nodiscard]] double kendall_tau(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace rehearse::validation
