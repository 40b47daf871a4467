// SPDX-License-Identifier: Apache-2.0
#include "sim/fabric/demand.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace rehearse::sim {
namespace {

// Bounds that fill a constraint to rounding still fit.
constexpr double kRounding = 1 + 1e-9;

}  // namespace

Demand::Demand(std::vector<BytesPerSec> capacity, const std::vector<bool>& changes,
               std::vector<std::vector<Use>> routes)
    : constraints_(capacity.size()), routes_(std::move(routes)) {
  for (size_t c = 0; c < capacity.size(); ++c) {
    constraints_[c].capacity = capacity[c];
    constraints_[c].changes = changes[c];
  }
  for (const auto& route : routes_) {
    BytesPerSec bound = std::numeric_limits<double>::infinity();
    bool shares = false;
    for (const Use& use : route) {
      const Constraint& constraint = constraints_[use.constraint];
      shares |= constraint.changes;
      if (!constraint.changes) bound = std::min(bound, constraint.capacity / use.weight);
    }
    bound_.push_back(bound);
    shares_.push_back(shares);
  }
}

bool Demand::start(uint32_t flow, uint32_t route, std::vector<uint32_t>& crowded) {
  bool free = !shares_[route];
  for (const Use& use : routes_[route]) {
    Constraint& constraint = constraints_[use.constraint];
    if (constraint.changes) continue;
    constraint.demand += bound_[route] * use.weight;
    ++constraint.flows;
    free &= constraint.demand <= constraint.capacity * kRounding;
  }
  for (const Use& use : routes_[route]) {
    Constraint& constraint = constraints_[use.constraint];
    if (free) {
      constraint.free.push_back(flow);
    } else if (constraint.demand > constraint.capacity * kRounding) {
      for (const uint32_t other : constraint.free) {
        if (std::find(crowded.begin(), crowded.end(), other) == crowded.end()) {
          crowded.push_back(other);
        }
      }
    }
  }
  return free;
}

void Demand::hold(uint32_t flow, uint32_t route) {
  for (const Use& use : routes_[route]) std::erase(constraints_[use.constraint].free, flow);
}

void Demand::end(uint32_t flow, uint32_t route, bool free) {
  if (free) hold(flow, route);
  for (const Use& use : routes_[route]) {
    Constraint& constraint = constraints_[use.constraint];
    if (constraint.changes) continue;
    // An empty constraint forgets what rounding has left.
    constraint.demand =
        --constraint.flows == 0 ? 0 : constraint.demand - bound_[route] * use.weight;
  }
}

}  // namespace rehearse::sim
