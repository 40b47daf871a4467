// SPDX-License-Identifier: Apache-2.0
#include "cli/study/search.hpp"

#include <algorithm>
#include <set>

#include "base/random.hpp"
#include "cli/study/surrogate.hpp"

namespace rehearse::cli {
namespace {

// Bounds of the work between points: a guess from more would take longer than simulating some of them.
constexpr size_t kMostKnown = 256, kMostCandidates = 2048, kMostAtOnce = 64;
constexpr size_t kRounds = 32;  // at least so often a guess is made anew, budget permitting

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
    const size_t first = std::min(plan_.axes.size() + 1, budget_ / 3);
    if (auto done = ask(spread(std::max<size_t>(2, first))); !done) {
      return tl::unexpected(std::move(done).error());
    }
    const size_t at_once = std::clamp<size_t>(budget_ / kRounds, 1, kMostAtOnce);
    while (order_.size() < budget_) {
      const bool blind =
          std::ranges::none_of(costs_, [](const auto& k) { return k.second.has_value(); });
      auto next =
          blind ? spread(at_once) : most_promising(plan_, best_known(), candidates(), at_once);
      if (auto done = ask(std::move(next)); !done) return tl::unexpected(std::move(done).error());
    }
    return order_;
  }

 private:
  // Points not asked for yet, each axis cut into as many parts as there are points and every part
  // used once, as far as the conditions of the study allow.
  std::vector<size_t> spread(size_t count) {
    count = std::min(count, plan_.points.size() - costs_.size());
    std::vector<std::vector<uint32_t>> columns;
    for (const StudyAxis& axis : plan_.axes) {
      std::vector<uint32_t> column;
      for (size_t i = 0; i < count; ++i) {
        const double place = static_cast<double>(i) + random_.uniform();
        column.push_back(static_cast<uint32_t>(place * static_cast<double>(axis.values.size()) /
                                               static_cast<double>(count)));
      }
      for (size_t i = column.size(); i > 1; --i) {
        std::swap(column[i - 1], column[random_.below(i)]);
      }
      columns.push_back(std::move(column));
    }
    std::vector<size_t> out;
    std::set<size_t> chosen;
    const auto taken = [&](size_t p) { return costs_.contains(p) || chosen.contains(p); };
    for (size_t i = 0; i < count; ++i) {
      std::vector<uint32_t> at;
      at.reserve(columns.size());
      for (const auto& column : columns) at.push_back(column[i]);
      const auto it = where_.find(at);
      size_t point = it == where_.end() ? random_.below(plan_.points.size()) : it->second;
      if (taken(point)) point = random_.below(plan_.points.size());
      while (taken(point)) point = (point + 1) % plan_.points.size();
      chosen.insert(point);
      out.push_back(point);
    }
    return out;
  }

  // What the guess is made from: all, or the best.
  [[nodiscard]] std::vector<KnownPoint> best_known() const {
    std::vector<KnownPoint> out;
    for (const size_t point : order_) out.push_back({point, costs_.at(point)});
    if (out.size() <= kMostKnown) return out;
    std::ranges::stable_sort(out, [](const KnownPoint& a, const KnownPoint& b) {
      return a.cost && (!b.cost || *a.cost < *b.cost);
    });
    out.resize(kMostKnown);
    return out;
  }

  // Points not asked for yet: all, or the neighbours of the best one and as many others as there is room for.
  std::vector<size_t> candidates() {
    std::vector<size_t> out;
    if (plan_.points.size() - order_.size() <= kMostCandidates) {
      for (size_t p = 0; p < plan_.points.size(); ++p) {
        if (!costs_.contains(p)) out.push_back(p);
      }
      return out;
    }
    std::set<size_t> chosen;
    for (const size_t point : neighbours(best())) chosen.insert(point);
    while (chosen.size() < kMostCandidates) {
      const size_t point = random_.below(plan_.points.size());
      if (!costs_.contains(point)) chosen.insert(point);
    }
    return {chosen.begin(), chosen.end()};
  }

  [[nodiscard]] size_t best() const {
    return *std::ranges::min_element(order_, [&](size_t a, size_t b) {
      const auto &x = costs_.at(a), &y = costs_.at(b);
      return x && (!y || *x < *y);
    });
  }

  [[nodiscard]] std::vector<size_t> neighbours(size_t point) const {
    std::vector<size_t> out;
    const auto consider = [&](const std::vector<uint32_t>& at) {
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
  std::vector<size_t> order_;
};

}  // namespace

Result<std::vector<size_t>> search(const Plan& plan, size_t budget, uint64_t seed,
                                   const Evaluate& evaluate) {
  return Search(plan, budget, seed, evaluate).run();
}

}  // namespace rehearse::cli
