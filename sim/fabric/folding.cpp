// SPDX-License-Identifier: Apache-2.0
#include "sim/fabric/folding.hpp"

#include <algorithm>
#include <map>
#include <numeric>

namespace rehearse::sim {
namespace {

// The routes of one link with weights, reduced by their common divisor.
struct Usage {
  std::vector<LinkWeight> routes;  // `link` is a route here
  uint32_t divisor = 1;
};

}  // namespace

Folding fold(const std::vector<BytesPerSec>& capacities,
             const std::vector<std::vector<LinkWeight>>& routes, const std::vector<bool>& kept) {
  std::vector<Usage> usage(capacities.size());
  for (size_t r = 0; r < routes.size(); ++r) {
    for (const LinkWeight& use : routes[r]) {
      usage[use.link].routes.push_back({static_cast<RouteId>(r), use.weight});
    }
  }
  Folding folding;
  folding.routes.resize(routes.size());
  const auto less = [](const std::vector<LinkWeight>* a, const std::vector<LinkWeight>* b) {
    return std::lexicographical_compare(
        a->begin(), a->end(), b->begin(), b->end(), [](const LinkWeight& x, const LinkWeight& y) {
          return x.link != y.link ? x.link < y.link : x.weight < y.weight;
        });
  };
  std::map<const std::vector<LinkWeight>*, size_t, decltype(less)> seen(less);
  for (size_t l = 0; l < usage.size(); ++l) {
    Usage& u = usage[l];
    if (u.routes.empty()) continue;
    uint32_t g = 0;
    for (const LinkWeight& use : u.routes) g = std::gcd(g, use.weight);
    u.divisor = std::max(g, 1u);
    for (LinkWeight& use : u.routes) use.weight /= u.divisor;
    const BytesPerSec capacity = capacities[l] / u.divisor;
    if (!kept[l]) {
      const auto [at, fresh] = seen.emplace(&u.routes, folding.capacity.size());
      if (!fresh) {
        BytesPerSec& tightest = folding.capacity[at->second];
        tightest = std::min(tightest, capacity);
        continue;
      }
    }
    const auto constraint = static_cast<LinkId>(folding.capacity.size());
    folding.capacity.push_back(capacity);
    if (kept[l]) folding.kept.emplace(static_cast<LinkId>(l), std::pair{constraint, u.divisor});
    for (const LinkWeight& use : u.routes)
      folding.routes[use.link].push_back({constraint, use.weight});
  }
  return folding;
}

}  // namespace rehearse::sim
