// SPDX-License-Identifier: Apache-2.0
// Loads of PAT (NCCL model §7.7): every rank's block goes down a binomial tree of its own, the far
// edges first. In the tree of root 0, rank x hangs below x without its lowest set bit, so a block
// crosses distance 2^d as often as there are x below N whose lowest bit is d: half of all blocks move
// between neighbours and one between the farthest. Reduce-scatter is the reverse.
#include "sim/nccl/loads.hpp"

namespace rehearse::sim {

int pat_dimensions(uint32_t ranks) {
  int dimensions = 0;
  while (dimensions < 31 && (uint32_t{1} << dimensions) < ranks) ++dimensions;
  return dimensions;
}

uint32_t pat_blocks(uint32_t ranks, int dimension) {
  const uint64_t step = uint64_t{1} << dimension;
  return ranks > step ? static_cast<uint32_t>((ranks - 1 - step) / (2 * step) + 1) : 0;
}

std::vector<Loads::Edge> Loads::pat_edges(int channel, int dimension, Function function) const {
  const auto n = static_cast<uint32_t>(placement_.members.size());
  const uint32_t distance = uint32_t{1} << dimension;
  const auto c = static_cast<uint32_t>(channel);
  std::vector<Edge> out;
  for (uint32_t rank = 0; rank < n && distance < n; ++rank) {
    const uint32_t other = (rank + distance) % n;
    const bool gather = function == Function::kAllGather;
    const uint32_t from = gather ? rank : other, to = gather ? other : rank;
    Crossings crossings;
    hop({from, net_for_receive(from, c)}, {to, net_for_receive(to, c)}, c, crossings);
    out.push_back({from, to, merged(crossings)});
  }
  return out;
}

std::vector<LinkWeight> Loads::pat(int channels, Function function, double& unit) const {
  const auto n = static_cast<uint32_t>(placement_.members.size());
  std::map<platforms::LinkId, double> crossings;
  for (int channel = 0; channel < channels; ++channel) {
    for (int dimension = 0; dimension < pat_dimensions(n); ++dimension) {
      const double blocks = pat_blocks(n, dimension);
      for (const Edge& edge : pat_edges(channel, dimension, function)) {
        for (const LinkWeight& use : edge.links) crossings[use.link] += use.weight * blocks;
      }
    }
  }
  return scaled(crossings, kMostWeight, unit);
}

}  // namespace rehearse::sim
