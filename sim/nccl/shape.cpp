// SPDX-License-Identifier: Apache-2.0
#include "sim/nccl/shape.hpp"

#include <cmath>
#include <string>

#include "sim/nccl/constants.hpp"

namespace rehearse::sim {

namespace {

constexpr int kMaxRanks = 1 << 20;
constexpr double kMaxFigure = 1e6;  // GB/s or µs: far above any link

Result<void> in_range(const char* what, int value, int low, int high) {
  if (value >= low && value <= high) return {};
  return fail(Code::kBadInput, std::string(what) + " is " + std::to_string(value) + ", not in " +
                                   std::to_string(low) + " to " + std::to_string(high));
}

bool sane(double figure) { return std::isfinite(figure) && figure >= 0 && figure <= kMaxFigure; }

Result<void> check_graph(const char* name, const GraphInfo& graph) {
  if (graph.n_channels < 0 || graph.n_channels > kMaxChannels || !sane(graph.bw_intra) ||
      !sane(graph.bw_inter) || !sane(graph.latency_inter_us)) {
    return fail(Code::kBadInput,
                std::string("the ") + name + " graph has a figure NCCL cannot have", {},
                "channels are 0 to 64, bandwidths and latencies finite and not negative");
  }
  return {};
}

}  // namespace

const GraphInfo& graph_of(const CommShape& shape, Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::kRing:
      return shape.ring;
    case Algorithm::kCollnetDirect:
      return shape.collnet_direct;
    case Algorithm::kCollnetChain:
      return shape.collnet_chain;
    case Algorithm::kNvls:
    case Algorithm::kNvlsTree:
      return shape.nvls;
    case Algorithm::kTree:
    case Algorithm::kPat:
      break;
  }
  return shape.tree;
}

double network_post_us(const CommShape& shape) {
  return shape.cpu_arch == CpuArch::kX86 && shape.cpu_vendor == CpuVendor::kAmd ? 2.0 : 1.0;
}

float ranks_per_node_mean(const CommShape& shape) {
  return static_cast<float>(shape.n_ranks) / static_cast<float>(shape.n_nodes);
}

Result<void> check_shape(const CommShape& shape) {
  struct Bound {
    const char* what;
    int value;
    int low;
    int high;
  };
  const Bound bounds[] = {
      {"the number of ranks", shape.n_ranks, 1, kMaxRanks},
      {"the number of nodes", shape.n_nodes, 1, shape.n_ranks},
      {"the ranks of the fullest node", shape.ranks_per_node, 1, shape.n_ranks},
      {"the lowest compute capability", shape.cc_min, 10, 10000},
      {"the highest compute capability", shape.cc_max, shape.cc_min, 10000},
      {"the number of channels", shape.n_channels, 1, kMaxChannels},
      {"the number of NVLS channels", shape.nvls_channels, 0, kMaxChannels},
      {"the number of NVLS channels with registered buffers", shape.nvls_registered_channels, 0,
       kMaxChannels},
      {"the number of NVLS heads", shape.nvls_heads, 0, kMaxRanks},
      {"the number of CollNet heads", shape.collnet_heads, 0, kMaxRanks},
      {"the depth of CollNetDirect", shape.collnet_depth, 0, 64},
  };
  for (const Bound& b : bounds) {
    if (auto ok = in_range(b.what, b.value, b.low, b.high); !ok) return ok;
  }
  struct Graph {
    const char* name;
    const GraphInfo* graph;
  };
  const Graph graphs[] = {{"ring", &shape.ring},
                          {"tree", &shape.tree},
                          {"nvls", &shape.nvls},
                          {"collnet direct", &shape.collnet_direct},
                          {"collnet chain", &shape.collnet_chain}};
  for (const Graph& g : graphs) {
    if (auto ok = check_graph(g.name, *g.graph); !ok) return ok;
  }
  return {};
}

}  // namespace rehearse::sim
