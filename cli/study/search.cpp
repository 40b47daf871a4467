// SPDX-License-Identifier: Apache-2.0
#include "cli/study/search.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "base/random.hpp"

namespace rehearse::cli {
namespace {

constexpr size_t kInVain = 3;

class Search {
 public:
  Search(const Plan& plan, size_t budget, uint64_t seed, const Evaluate& evaluate)
      : plan_(plan),
        budget_(std::min(budget, plan.points.size())),
        random_(seed, "study search"),
        evaluate_(evaluate) {
    for (size_t p = 0; p < plan.points.size(); ++p) where_[plan.points[p]] = p;
  }

  Result<std::vector<size_t>> run() {
    if (auto done = ask(spread(std::max(plan_.axes.size() + 1, budget_ / 4))); !done) {
      return tl::unexpected(std::move(done).error());
    }
    size_t in_vain = 0;  // promising points in a row that were no better
    while (order_.size() < budget_) {
      const double before = least_cost();
      std::vector<size_t> next;
      if (in_vain < kInVain) next = promising();
      const bool tried = !next.empty();
      if (!tried) {
        if (const std::optional<size_t> from = next_start()) next = neighbours(*from);
      }
      // Everything known is explored: look somewhere else.
      if (!tried && next.empty() && explored_.size() >= feasible()) next = spread(1);
      if (auto done = ask(std::move(next)); !done) return tl::unexpected(std::move(done).error());
      in_vain = tried && !(least_cost() < before) ? in_vain + 1 : 0;
    }
    return order_;
  }

 private:
  // Points not asked for yet, each axis cut into as many parts as there are points and every part
  // used once, as far as the conditions of the study allow.
  std::vector<size_t> spread(size_t count) {
    std::vector<size_t> out;
    std::vector<std::vector<uint32_t>> columns;
    for (const StudyAxis& axis : plan_.axes) {
      std::vector<uint32_t> column;
      for (size_t i = 0; i < count; ++i) {
        column.push_back(static_cast<uint32_t>(i * axis.values.size() / count));
      }
      for (size_t i = column.size(); i > 1; --i) {
        std::swap(column[i - 1], column[random_.below(i)]);
      }
      columns.push_back(std::move(column));
    }
    std::set<size_t> chosen;
    for (size_t i = 0; i < count; ++i) {
      std::vector<uint32_t> at;
      for (const auto& column : columns) at.push_back(column[i]);
      const auto it = where_.find(at);
      size_t point = it == where_.end() ? plan_.points.size() : it->second;
      if (point == plan_.points.size() || costs_.contains(point) || chosen.contains(point)) {
        point = random_.below(plan_.points.size());
        while (costs_.contains(point) || chosen.contains(point)) {
          point = (point + 1) % plan_.points.size();
        }
      }
      chosen.insert(point);
      out.push_back(point);
      if (costs_.size() + chosen.size() >= plan_.points.size()) break;
    }
    return out;
  }

  [[nodiscard]] double least_cost() const {
    double least = std::numeric_limits<double>::infinity();
    for (const auto& [point, cost] : costs_) least = std::min(least, cost.value_or(least));
    return least;
  }

  [[nodiscard]] size_t feasible() const {
    return static_cast<size_t>(std::count_if(costs_.begin(), costs_.end(),
                                             [](const auto& known) { return known.second; }));
  }

  // The point not asked for yet that would be best if axes acted each for itself: the sum over axes of the mean cost
  // of the points known with its value there. A value that nobody has tried counts as the best of its axis.
  std::vector<size_t> promising() const {
    std::vector<std::vector<double>> effect;
    for (size_t a = 0; a < plan_.axes.size(); ++a) {
      const size_t size = plan_.axes[a].values.size();
      std::vector<double> sum(size, 0), count(size, 0);
      for (const auto& [point, cost] : costs_) {
        if (!cost) continue;
        sum[plan_.points[point][a]] += *cost;
        ++count[plan_.points[point][a]];
      }
      double best = std::numeric_limits<double>::infinity();
      for (size_t v = 0; v < size; ++v) {
        if (count[v] > 0) best = std::min(best, sum[v] /= count[v]);
      }
      if (!std::isfinite(best)) return {};  // nothing feasible is known
      for (size_t v = 0; v < size; ++v) {
        if (count[v] == 0) sum[v] = best;
      }
      effect.push_back(std::move(sum));
    }
    std::optional<size_t> best;
    double least = std::numeric_limits<double>::infinity();
    for (size_t p = 0; p < plan_.points.size(); ++p) {
      if (costs_.contains(p)) continue;
      double cost = 0;
      for (size_t a = 0; a < effect.size(); ++a) cost += effect[a][plan_.points[p][a]];
      if (cost < least) {
        least = cost;
        best = p;
      }
    }
    return best ? std::vector<size_t>{*best} : std::vector<size_t>{};
  }

  // The best point whose neighbours were not all looked at.
  std::optional<size_t> next_start() {
    std::optional<size_t> best;
    for (const size_t point : order_) {
      if (!costs_[point] || explored_.contains(point)) continue;
      if (!best || *costs_[point] < *costs_[*best]) best = point;
    }
    if (best) explored_.insert(*best);
    return best;
  }

  std::vector<size_t> neighbours(size_t point) const {
    std::vector<size_t> out;
    const auto consider = [&](std::vector<uint32_t> at) {
      const auto it = where_.find(at);
      if (it != where_.end() && !costs_.contains(it->second)) out.push_back(it->second);
    };
    for (size_t a = 0; a < plan_.axes.size(); ++a) {
      const auto size = static_cast<uint32_t>(plan_.axes[a].values.size());
      std::vector<uint32_t> at = plan_.points[point];
      const uint32_t here = at[a];
      for (uint32_t v = 0; v < size; ++v) {
        const bool near = !plan_.axes[a].ordered || v + 1 == here || v == here + 1;
        if (v == here || !near) continue;
        at[a] = v;
        consider(at);
      }
    }
    return out;
  }

  Result<void> ask(std::vector<size_t> points) {
    if (points.size() > budget_ - order_.size()) points.resize(budget_ - order_.size());
    if (points.empty()) return {};
    RH_TRY(const auto costs, evaluate_(points));
    for (size_t i = 0; i < points.size(); ++i) {
      order_.push_back(points[i]);
      costs_[points[i]] = costs[i];
    }
    return {};
  }

  const Plan& plan_;
  size_t budget_;
  Random random_;
  const Evaluate& evaluate_;
  std::map<std::vector<uint32_t>, size_t> where_;
  std::map<size_t, std::optional<double>> costs_;
  std::set<size_t> explored_;
  std::vector<size_t> order_;
};

}  // namespace

Result<std::vector<size_t>> search(const Plan& plan, size_t budget, uint64_t seed,
                                   const Evaluate& evaluate) {
  return Search(plan, budget, seed, evaluate).run();
}

}  // namespace rehearse::cli
