// SPDX-License-Identifier: Apache-2.0
#include "cli/study/effects.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <tuple>

namespace rehearse::cli {
namespace {

struct Sample {
  const std::vector<uint32_t>* at;
  double value;
};

struct Sum {
  double sum = 0;
  size_t n = 0;
};

// Sum of squares between the cells that `key` puts samples into.
template <typename Key>
double between(const std::vector<Sample>& samples, double mean, Key key) {
  std::map<uint64_t, Sum> cells;
  for (const Sample& sample : samples) {
    Sum& cell = cells[key(*sample.at)];
    cell.sum += sample.value;
    ++cell.n;
  }
  double out = 0;
  for (const auto& [_, cell] : cells) {
    const auto n = static_cast<double>(cell.n);
    out += n * (cell.sum / n - mean) * (cell.sum / n - mean);
  }
  return out;
}

}  // namespace

std::vector<Effect> effects_of(const Plan& plan, const std::map<size_t, Row>& rows,
                               const Goal& goal) {
  std::vector<Sample> samples;
  double mean = 0;
  for (const auto& [point, row] : rows) {
    if (!goal.feasible(row)) continue;
    samples.push_back({&plan.points[point], *figure(row, goal.metric())});
    mean += samples.back().value;
  }
  if (samples.empty()) return {};
  mean /= static_cast<double>(samples.size());
  double total = 0;
  for (const Sample& sample : samples) total += (sample.value - mean) * (sample.value - mean);
  const auto share = [&](double squares) { return total > 0 ? squares / total : 0; };

  std::vector<Effect> out, pairs;
  std::vector<double> alone(plan.axes.size());
  for (size_t a = 0; a < plan.axes.size(); ++a) {
    alone[a] = between(samples, mean, [&](const auto& at) { return uint64_t{at[a]}; });
    Effect effect{{a}, share(alone[a]), {}};
    std::vector<Sum> cells(plan.axes[a].values.size());
    for (const Sample& sample : samples) {
      cells[(*sample.at)[a]].sum += sample.value;
      ++cells[(*sample.at)[a]].n;
    }
    for (const Sum& cell : cells) {
      effect.means.push_back(cell.n == 0 ? std::numeric_limits<double>::quiet_NaN()
                                         : cell.sum / static_cast<double>(cell.n));
    }
    out.push_back(std::move(effect));
  }
  for (size_t a = 0; a < plan.axes.size(); ++a) {
    for (size_t b = a + 1; b < plan.axes.size(); ++b) {
      const double both =
          between(samples, mean, [&](const auto& at) { return (uint64_t{at[a]} << 32) | at[b]; });
      const double rest = share(std::max(0.0, both - alone[a] - alone[b]));
      if (rest >= 0.01) pairs.push_back({{a, b}, rest, {}});
    }
  }
  std::ranges::stable_sort(pairs, std::greater<>(), &Effect::share);
  out.insert(out.end(), std::make_move_iterator(pairs.begin()),
             std::make_move_iterator(pairs.end()));
  return out;
}

bool is_full_product(const Plan& plan, const std::map<size_t, Row>& rows, const Goal& goal) {
  size_t combinations = 1;
  for (const StudyAxis& axis : plan.axes) combinations *= axis.values.size();
  const auto feasible =
      std::ranges::count_if(rows, [&](const auto& item) { return goal.feasible(item.second); });
  return static_cast<size_t>(feasible) == combinations;
}

std::vector<size_t> pareto_front(const std::map<size_t, Row>& rows, const Goal& goal,
                                 const std::string& first, const std::string& second) {
  struct Candidate {
    double a, b;
    size_t point;
  };
  std::vector<Candidate> all;
  for (const auto& [point, row] : rows) {
    if (goal.feasible(row)) all.push_back({*figure(row, first), *figure(row, second), point});
  }
  std::ranges::sort(all, {}, [](const Candidate& c) { return std::tuple(c.a, c.b, c.point); });
  std::vector<size_t> front;
  double least = std::numeric_limits<double>::infinity();
  for (const Candidate& candidate : all) {
    if (candidate.b >= least) continue;
    least = candidate.b;
    front.push_back(candidate.point);
  }
  return front;
}

std::vector<size_t> ranked(const std::map<size_t, Row>& rows, const Goal& goal) {
  std::vector<std::pair<double, size_t>> order;
  for (const auto& [point, row] : rows) {
    if (const auto cost = goal.cost(row)) order.emplace_back(*cost, point);
  }
  std::ranges::sort(order);
  std::vector<size_t> out;
  out.reserve(order.size());
  for (const auto& [_, point] : order) out.push_back(point);
  return out;
}

}  // namespace rehearse::cli
