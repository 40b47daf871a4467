// SPDX-License-Identifier: Apache-2.0
#include "cli/study/surrogate.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

namespace rehearse::cli {
namespace {

// What two values of an axis without order have in common, and how much of a point's cost is the sum of what each axis
// does for itself. Priors, of little weight once a few points are known.
constexpr double kAlike = 0.4;
constexpr double kAdditive = 0.7;
constexpr double kNoise = 1e-4;  // keeps the factors positive where points are nearly alike

// Costs as ranks with mean 0 and variance 1; equal costs have the same rank.
std::vector<double> standard_ranks(const std::vector<KnownPoint>& known) {
  std::vector<double> costs;
  costs.reserve(known.size());
  for (const KnownPoint& one : known) {
    costs.push_back(one.cost.value_or(std::numeric_limits<double>::infinity()));
  }
  std::vector<double> sorted = costs;
  std::ranges::sort(sorted);
  std::vector<double> ranks;
  ranks.reserve(costs.size());
  for (const double cost : costs) {
    ranks.push_back(static_cast<double>(std::ranges::lower_bound(sorted, cost) - sorted.begin()));
  }
  const auto n = static_cast<double>(ranks.size());
  const double mean = std::reduce(ranks.begin(), ranks.end()) / n;
  double squares = 0;
  for (double& rank : ranks) {
    rank -= mean;
    squares += rank * rank;
  }
  const double deviation = squares > 0 ? std::sqrt(squares / n) : 1;
  for (double& rank : ranks) rank /= deviation;
  return ranks;
}

// Correlations of points, and the process conditioned on one known point after the other: row i of the Cholesky
// factor, kept for every place of interest.
class Process {
 public:
  Process(const Plan& plan, const std::vector<size_t>& places)
      : plan_(plan), places_(places), mean_(places.size(), 0), variance_(places.size(), 1) {
    rows_.resize(places.size());
    for (const StudyAxis& axis : plan.axes) {
      const size_t size = axis.values.size();
      std::vector<double> table;
      for (size_t i = 0; i < size * size; ++i) {
        const size_t row = i / size, column = i % size;
        const auto x = static_cast<double>(row), y = static_cast<double>(column);
        const double apart = size > 1 ? (x - y) / static_cast<double>(size - 1) : 0;
        table.push_back(axis.ordered ? std::exp(-0.5 * apart * apart) : x == y ? 1 : kAlike);
      }
      alike_.push_back(std::move(table));
    }
  }

  // Learns that the place has this value.
  void learn(size_t place, double value) {
    const std::vector<double> own = rows_[place];
    const double root = std::sqrt(std::max(variance_[place], 0.0) + kNoise);
    const double news = (value - mean_[place]) / root;
    for (size_t q = 0; q < places_.size(); ++q) {
      const double shared = std::inner_product(own.begin(), own.end(), rows_[q].begin(), 0.0);
      const double entry = (correlation(places_[place], places_[q]) - shared) / root;
      rows_[q].push_back(entry);
      mean_[q] += entry * news;
      variance_[q] -= entry * entry;
    }
  }

  [[nodiscard]] double mean(size_t place) const { return mean_[place]; }

  // How much less than `best` the place is expected to be, where it is less at all.
  [[nodiscard]] double improvement(size_t place, double best) const {
    const double deviation = std::sqrt(std::max(variance_[place], 1e-9));
    const double by = (best - mean_[place]) / deviation;
    const double below = 0.5 * (1 + std::erf(by / std::numbers::sqrt2));
    const double density = std::exp(-0.5 * by * by) / std::sqrt(2 * std::numbers::pi);
    return deviation * (by * below + density);
  }

 private:
  [[nodiscard]] double correlation(size_t p, size_t q) const {
    double sum = 0, product = 1;
    for (size_t a = 0; a < alike_.size(); ++a) {
      const size_t size = plan_.axes[a].values.size();
      const double alike = alike_[a][plan_.points[p][a] * size + plan_.points[q][a]];
      sum += alike;
      product *= alike;
    }
    const double mean = alike_.empty() ? 1 : sum / static_cast<double>(alike_.size());
    return kAdditive * mean + (1 - kAdditive) * product;
  }

  const Plan& plan_;
  const std::vector<size_t>& places_;
  std::vector<std::vector<double>> alike_;  // per axis: value by value
  std::vector<std::vector<double>> rows_;   // per place
  std::vector<double> mean_, variance_;
};

}  // namespace

std::vector<size_t> most_promising(const Plan& plan, const std::vector<KnownPoint>& known,
                                   const std::vector<size_t>& candidates, size_t count) {
  std::vector<size_t> places;
  places.reserve(known.size() + candidates.size());
  for (const KnownPoint& one : known) places.push_back(one.point);
  places.insert(places.end(), candidates.begin(), candidates.end());
  const std::vector<double> ranks = standard_ranks(known);
  Process process(plan, places);
  for (size_t i = 0; i < known.size(); ++i) process.learn(i, ranks[i]);
  double best = *std::ranges::min_element(ranks);
  std::vector<size_t> out;
  std::vector<bool> taken(places.size(), false);
  while (out.size() < std::min(count, candidates.size())) {
    size_t next = places.size();
    double most = -1;
    for (size_t q = known.size(); q < places.size(); ++q) {
      if (taken[q]) continue;
      const double gain = process.improvement(q, best);
      if (gain > most) {
        most = gain;
        next = q;
      }
    }
    taken[next] = true;
    out.push_back(places[next]);
    if (out.size() == count) break;
    best = std::min(best, process.mean(next));
    process.learn(next, process.mean(next));
  }
  return out;
}

}  // namespace rehearse::cli
