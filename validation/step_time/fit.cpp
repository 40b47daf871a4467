// SPDX-License-Identifier: Apache-2.0
#include "validation/step_time/fit.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "validation/statistics.hpp"

namespace rehearse::validation {
namespace {

using Three = std::array<double, 3>;

// Inverse shares and passes; an e of 0.95 and one pass at one end, 0.1 and 600 passes at the other.
constexpr Three kLeast = {1 / .95, 1 / .95, 1};
constexpr Three kMost = {1 / .1, 1 / .1, 600};

// Minimises the weighted sum of (row . x - 1)^2, one coordinate after the other within its bounds:
// convex, so that it ends at the least value.
Three least_squares(const std::vector<Three>& rows, const std::vector<double>& weights, Three x) {
  for (int round = 0; round < 200; ++round) {
    for (size_t j = 0; j < 3; ++j) {
      double top = 0, bottom = 0;
      for (size_t i = 0; i < rows.size(); ++i) {
        double rest = 1;
        for (size_t k = 0; k < 3; ++k) rest -= k == j ? 0 : rows[i][k] * x[k];
        top += weights[i] * rows[i][j] * rest;
        bottom += weights[i] * rows[i][j] * rows[i][j];
      }
      if (bottom > 0) x[j] = std::clamp(top / bottom, kLeast[j], kMost[j]);
    }
  }
  return x;
}

}  // namespace

StepRates fit_rates(const std::vector<MeasuredStep>& steps) {
  StepRates rates;
  if (steps.size() < 4) return rates;
  std::vector<Three> rows;
  for (const MeasuredStep& step : steps) {
    const double own = step.seconds - step.terms.fixed;
    if (own > 0) {
      rows.push_back({step.terms.gemm / own, step.terms.attention / own, step.terms.pass / own});
    }
  }
  std::vector<double> weights(rows.size(), 1);
  Three x = {1 / rates.gemm, 1 / rates.attention, rates.passes};
  for (int round = 0; round < 10; ++round) {
    x = least_squares(rows, weights, x);
    std::vector<double> residuals;
    for (const Three& row : rows) {
      residuals.push_back(std::abs(row[0] * x[0] + row[1] * x[1] + row[2] * x[2] - 1));
    }
    const double scatter = std::max(.01, 1.4826 * quantile_of(residuals, .5));
    for (size_t i = 0; i < rows.size(); ++i) {
      weights[i] = std::min(1.0, 1.345 * scatter / std::max(residuals[i], 1e-12));
    }
  }
  rates.gemm = 1 / x[0];
  rates.attention = 1 / x[1];
  rates.passes = x[2];
  return rates;
}

}  // namespace rehearse::validation
