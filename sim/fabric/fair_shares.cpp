// SPDX-License-Identifier: Apache-2.0
#include "sim/fabric/fair_shares.hpp"

#include <algorithm>
#include <limits>
#include <map>

namespace rehearse::sim {
namespace {

struct Full {
  double left = 0;
  double weight = 0;  // of flows that still grow
  std::vector<size_t> flows;
};

}  // namespace

std::vector<BytesPerSec> fair_shares(const std::vector<BytesPerSec>& capacities,
                                     const std::vector<std::span<const LinkWeight>>& flows) {
  std::vector<BytesPerSec> rates(flows.size(), 0);
  std::vector<bool> grows(flows.size(), true);
  std::map<LinkId, Full> used;
  for (size_t f = 0; f < flows.size(); ++f) {
    for (const LinkWeight& use : flows[f]) {
      Full& constraint = used[use.link];
      constraint.left = capacities[use.link];
      constraint.weight += use.weight;
      constraint.flows.push_back(f);
    }
  }
  while (true) {
    Full* tightest = nullptr;
    double rate = std::numeric_limits<double>::infinity();
    for (auto& [link, constraint] : used) {
      if (constraint.weight <= 0 || constraint.left / constraint.weight >= rate) continue;
      rate = constraint.left / constraint.weight;
      tightest = &constraint;
    }
    if (tightest == nullptr) return rates;
    for (const size_t f : tightest->flows) {
      if (!grows[f]) continue;
      grows[f] = false;
      rates[f] = rate;
      for (const LinkWeight& use : flows[f]) {
        Full& constraint = used.at(use.link);
        constraint.left = std::max(0.0, constraint.left - rate * use.weight);
        constraint.weight -= use.weight;
      }
    }
    tightest->weight = 0;
  }
}

}  // namespace rehearse::sim
