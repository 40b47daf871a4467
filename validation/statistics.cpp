// SPDX-License-Identifier: Apache-2.0
#include "validation/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/random.hpp"

namespace rehearse::validation {
namespace {

constexpr size_t kResamples = 400;

}  // namespace

double quantile(const std::vector<double>& sorted, double q) {
  if (sorted.empty()) return 0;
  const double at = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(at);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (sorted[above] - sorted[below]) * (at - static_cast<double>(below));
}

double quantile_of(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  return quantile(values, q);
}

ErrorSummary summarise(std::vector<double> signed_errors) {
  ErrorSummary out;
  out.rows = signed_errors.size();
  std::sort(signed_errors.begin(), signed_errors.end());
  out.bias = quantile(signed_errors, .5);
  for (double& error : signed_errors) error = std::abs(error);
  std::sort(signed_errors.begin(), signed_errors.end());
  out.median = quantile(signed_errors, .5);
  out.p90 = quantile(signed_errors, .9);
  return out;
}

std::optional<Interval> median_interval(const std::vector<GroupedError>& errors) {
  std::map<std::string, std::vector<double>> groups;
  std::vector<double> every;
  for (const GroupedError& one : errors) {
    groups[one.group].push_back(std::abs(one.error));
    every.push_back(std::abs(one.error));
  }
  std::vector<const std::vector<double>*> all;
  all.reserve(groups.size());
  for (const auto& [name, values] : groups) all.push_back(&values);
  if (all.size() < kFewestGroups) return std::nullopt;
  Random random(0, "interval of the median");
  std::vector<double> medians, drawn;
  for (size_t i = 0; i < kResamples; ++i) {
    drawn.clear();
    for (size_t g = 0; g < all.size(); ++g) {
      const std::vector<double>& values = *all[random.below(all.size())];
      drawn.insert(drawn.end(), values.begin(), values.end());
    }
    medians.push_back(quantile_of(drawn, .5));
  }
  std::sort(medians.begin(), medians.end());
  const double own = quantile_of(std::move(every), .5);
  return Interval{std::min(own, quantile(medians, .025)), std::max(own, quantile(medians, .975))};
}

double kendall_tau(const std::vector<double>& a, const std::vector<double>& b) {
  double agree = 0, disagree = 0, only_a = 0, only_b = 0;
  const auto sign = [](double x) { return x > 0 ? 1 : x < 0 ? -1 : 0; };
  for (size_t i = 0; i < a.size(); ++i) {
    for (size_t j = i + 1; j < a.size(); ++j) {
      const int x = sign(a[i] - a[j]), y = sign(b[i] - b[j]);
      agree += x * y > 0 ? 1 : 0;
      disagree += x * y < 0 ? 1 : 0;
      only_a += x != 0 && y == 0 ? 1 : 0;
      only_b += x == 0 && y != 0 ? 1 : 0;
    }
  }
  const double scale = std::sqrt((agree + disagree + only_a) * (agree + disagree + only_b));
  return scale > 0 ? (agree - disagree) / scale : 0;
}

}  // namespace rehearse::validation
