// SPDX-License-Identifier: Apache-2.0
// The inputs of NCCL's decisions for one communicator: its size, its processors and the graphs the
// topology search found (already reduced over all ranks: channels and bandwidths the minimum, path
// types and patterns the maximum). Values only.
#pragma once

#include "base/error.hpp"
#include "sim/nccl/names.hpp"

namespace rehearse::sim {

// One result of the topology search. A graph that was not found has no channels.
struct GraphInfo {
  int n_channels = 0;
  double bw_intra = 0;  // GB/s of one channel inside a node
  double bw_inter = 0;  // GB/s of one channel between nodes
  PathType type_intra = PathType::kPix;
  PathType type_inter = PathType::kPix;
  double latency_inter_us = 0;  // latency the NIC reports
  bool same_channels = false;   // all channels run over the same GPUs in the same order

  bool operator==(const GraphInfo&) const = default;
};

struct CommShape {
  int n_nodes = 1;
  int ranks_per_node = 1;  // of the fullest node
  int n_ranks = 1;
  int cc_min = 80;  // lowest compute capability, 10·major + minor
  int cc_max = 80;  // highest
  CpuArch cpu_arch = CpuArch::kX86;
  CpuVendor cpu_vendor = CpuVendor::kIntel;
  int n_channels = 1;  // of the communicator, after duplication; not of the graphs
  GraphPattern tree_pattern_max = GraphPattern::kBalancedTree;
  bool nvswitch = false;

  bool nvls_support = false;
  int nvls_channels = 0;
  int nvls_heads = 0;

  bool collnet = false;
  int collnet_heads = 0;
  int collnet_depth = 0;  // of CollNetDirect: 2, or 1 with one rank per node

  GraphInfo ring;
  GraphInfo tree;
  GraphInfo nvls;
  GraphInfo collnet_direct;
  GraphInfo collnet_chain;

  bool collnet_allgather = true;      // the CollNet plugin offers it
  bool collnet_reducescatter = true;  // the CollNet plugin offers it
  bool host_network = true;           // the network device runs on the host (PAT needs that)
  bool built_with_cuda_11_8 = false;
  int nvls_registered_channels = 0;  // channels NVLS asks for with registered buffers; 0: unknown

  bool operator==(const CommShape&) const = default;
};

// The graph an algorithm runs on: NVLS_TREE runs on the nvls graph, PAT on the tree graph.
[[nodiscard]] const GraphInfo& graph_of(const CommShape& shape, Algorithm algorithm);

// What NCCL reckons a post to the network to cost the host, µs, unless NCCL_NET_OVERHEAD says
// otherwise (src/graph/tuning.cc, getNetOverhead).
[[nodiscard]] double network_post_us(const CommShape& shape);

// Mean ranks per node as NCCL computes it, in single precision.
[[nodiscard]] float ranks_per_node_mean(const CommShape& shape);

// Code::kBadInput when a figure is outside what NCCL can have: counts below one, more than 64
// channels, negative or infinite bandwidths, more nodes than ranks. The other functions of this
// folder rely on a checked shape.
[[nodiscard]] Result<void> check_shape(const CommShape& shape);

}  // namespace rehearse::sim
