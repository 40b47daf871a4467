// SPDX-License-Identifier: Apache-2.0
// NCCL's graph search inside one node (NCCL model §7.3): which GPUs a channel visits in which order,
// by which network device it comes and goes, how many channels of which speed class fit. Speeds are
// tried from high to low; a try takes bandwidth from every wire on its paths and gives it back when it
// fails; budgets bound the number of GPUs visited, so the result depends on the order of tries, which
// is NCCL's.
//
// Deterministic; a few milliseconds at most.
#pragma once

#include <span>
#include <vector>

#include "sim/nccl/node_system.hpp"

namespace rehearse::sim {

struct SearchRequest {
  GraphPattern pattern = GraphPattern::kRing;
  int min_channels = 1;
  int max_channels = 32;
  bool collnet = false;  // only network devices whose fabric reduces
  // Also tries whose result is known beforehand (search.cpp): the same graph, for tests of that.
  bool thorough = false;
};

struct SearchedChannel {
  std::vector<uint32_t> gpus;  // indices into NodeSystem::gpus; NVLS: the head only
  uint32_t net_in = 0;         // indices into NodeSystem::nets; unused without nets
  uint32_t net_out = 0;
};

// Without channels: not found, or not possible here.
struct SearchedGraph {
  GraphPattern pattern = GraphPattern::kRing;
  int cross_nic = 0;
  float intra = 0;  // GB/s of one channel inside the node
  float inter = 0;  // GB/s of one channel to the network
  PathType type_intra = PathType::kLoc;
  PathType type_inter = PathType::kPix;
  bool same_channels = true;
  std::vector<SearchedChannel> channels;
  uint64_t visits = 0;  // of GPUs that the search took

  [[nodiscard]] int n_channels() const { return static_cast<int>(channels.size()); }
};

[[nodiscard]] SearchedGraph search_graph(const NodeSystem& system, const SearchRequest& request,
                                         const TopologySettings& settings);

// Speed classes in GB/s that the search tries, from high to low.
[[nodiscard]] std::span<const float> speed_classes(int compute_capability, bool network,
                                                   const NcclVersion& version);

}  // namespace rehearse::sim
