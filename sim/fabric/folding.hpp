// SPDX-License-Identifier: Apache-2.0
// Folding: links that carry the same routes in the same proportion bind or do not bind together, so
// only the tightest of them can ever matter. A healthy ring over a thousand identical GPUs folds to
// a handful of constraints; the cost of sharing grows with constraints, not with links.
//
// Two links fold when, after dividing each link's weights by their greatest common divisor g, their
// lists of (route, weight) are equal; the constraint's capacity is the smallest capacity / g. A
// kept link never folds. Exact: the set of feasible rates is unchanged.
#pragma once

#include <map>
#include <vector>

#include "sim/fabric/fabric.hpp"

namespace rehearse::sim {

struct Folding {
  std::vector<BytesPerSec> capacity;            // per constraint
  std::vector<std::vector<LinkWeight>> routes;  // per route: constraints with weights
  // Kept links that carry a route: their constraint and g.
  std::map<LinkId, std::pair<LinkId, uint32_t>> kept;
};

[[nodiscard]] Folding fold(const std::vector<BytesPerSec>& capacities,
                           const std::vector<std::vector<LinkWeight>>& routes,
                           const std::vector<bool>& kept);

}  // namespace rehearse::sim
