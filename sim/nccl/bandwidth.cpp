// SPDX-License-Identifier: Apache-2.0
// The bandwidth column of the cost table (NCCL 2.28.9; NCCL model §3.2).
//   n        channels of the algorithm's graph       ppn  mean ranks per node
//   bus      bytes each GPU moves per second         k    share of multicast traffic that is ours
// Assignments round to single precision where NCCL's do.
#include <algorithm>
#include <limits>

#include "sim/nccl/tuning.hpp"

namespace rehearse::sim {

namespace {

float single(double value) { return static_cast<float>(value); }

double per_channel(const ScaleTable& table, const CommShape& shape) {
  return table[index_of(arch_of(shape.cc_min))][scale_of(shape.n_nodes)];
}

// One node: by GPU. More: the table's Ampere row holds the figures of AMD hosts, Volta's the
// others.
double ll_max(const TuningInput& in) {
  const CommShape& shape = in.shape;
  Arch row = arch_of(shape.cc_min);
  if (shape.n_nodes > 1) {
    const bool amd = shape.cpu_vendor == CpuVendor::kAmd || shape.cpu_vendor == CpuVendor::kMixed;
    row = amd ? Arch::kAmpere : Arch::kVolta;
  }
  return in.constants.ll_max[index_of(row)][scale_of(shape.n_nodes)];
}

// GB/s of one NVLS channel since 2.28: multicast moves data twice in an AllReduce.
float nvls_channel(const TuningInput& in, const Variant& v) {
  const GraphInfo& graph = in.shape.nvls;
  const float n = static_cast<float>(graph.n_channels);
  const float ppn = ranks_per_node_mean(in.shape);
  float intra = single(graph.bw_intra) *
                single(in.constants.nvls_efficiency[index_of(arch_of(in.shape.cc_min))]) * (n - 1) /
                n;
  intra *= v.function == Function::kAllReduce ? 2.0F : (ppn - 1) / ppn;
  const bool tree = v.algorithm == Algorithm::kNvlsTree;
  const float inter = single(graph.bw_inter) * (tree && in.shape.n_nodes <= 2 ? 2.0F : 1.0F);
  const float cap = tree ? single(per_channel(in.constants.nvls_tree_per_channel, in.shape))
                         : std::numeric_limits<float>::max();
  return std::min({intra, inter, cap});
}

// The rules before 2.28 (NCCL model §10).
float nvls_channel_before_2_28(const TuningInput& in, const Variant& v) {
  const float intra = single(in.shape.nvls.bw_intra);
  const float inter = single(in.shape.nvls.bw_inter);
  if (v.algorithm == Algorithm::kNvlsTree) {
    return std::min(intra, in.shape.n_nodes <= 2 ? inter : inter / 2);
  }
  if (in.constants.nvls_rule == NvlsRule::kGatherShare && is_gather(v.function)) {
    const float ppn = ranks_per_node_mean(in.shape);
    return std::min(intra * (ppn - 1.0F) / ppn, inter * 0.9F);
  }
  return std::min(intra, inter);
}

float channel_bandwidth(const TuningInput& in, const Variant& v) {
  if (is_nvls(v.algorithm)) {
    return in.constants.nvls_rule == NvlsRule::kEfficiency ? nvls_channel(in, v)
                                                           : nvls_channel_before_2_28(in, v);
  }
  const GraphInfo& graph = graph_of(in.shape, v.algorithm);
  return single(in.shape.n_nodes <= 2 || is_collnet(v.algorithm) ? graph.bw_intra : graph.bw_inter);
}

float ring_bus(const TuningInput& in, const Variant& v, float bus) {
  const int n = in.shape.ring.n_channels;
  if (v.protocol == Protocol::kLl) {
    double share = 0.5;
    if (!in.constants.ring_ll_half) {
      const bool reduces = v.function == Function::kAllReduce || v.function == Function::kReduce;
      share = in.shape.n_nodes > 1 || reduces ? 1.0 / 4.0 : 1.0 / 3.0;
    }
    return single(std::min(ll_max(in), bus * share));
  }
  if (v.protocol == Protocol::kLl128) {
    const double share = ranks_per_node_mean(in.shape) < 2 ? in.constants.ring_ll128_alone : 0.92;
    return single(
        std::min(bus * share, n * per_channel(in.constants.ring_ll128_per_channel, in.shape)));
  }
  return bus;
}

float tree_bus(const TuningInput& in, const Variant& v, float bus) {
  const int n = in.shape.tree.n_channels;
  bus = single(std::min(bus * .92, n * per_channel(in.constants.tree_per_channel, in.shape)));
  if (v.protocol == Protocol::kLl) {
    bus = single(std::min(bus * 1.0 / 3.8, ll_max(in)));
  } else if (v.protocol == Protocol::kLl128) {
    const double share = in.shape.n_nodes == 1 ? 7.0 / 9.0 : 120.0 / 128.0;
    bus = single(
        std::min(bus * share, n * per_channel(in.constants.tree_ll128_per_channel, in.shape)));
  }
  if (in.shape.tree_pattern_max == GraphPattern::kTree) bus = single(bus * .85);
  return bus;
}

float collnet_direct_bus(const TuningInput& in, const Variant& v, float bus) {
  const GraphInfo& graph = in.shape.collnet_direct;
  const float ppn = ranks_per_node_mean(in.shape);
  if (is_gather(v.function)) {
    if (!in.constants.gather_ratio_by_ranks) {
      return ppn * std::min(single(graph.bw_intra), single(graph.bw_inter) * 0.9F);
    }
    const float weight = (ppn - 1) / 7;
    const double share = std::max(0.0, weight * 0.85 + (1 - weight) * 0.95);
    return single(ppn * single(graph.bw_intra) * share);
  }
  if (graph.n_channels == 0) return 0;
  float gpus_per_nic = single(ppn / (1.0 * graph.n_channels));
  gpus_per_nic -= (gpus_per_nic - 1) / 2;
  bus /= gpus_per_nic;
  return in.shape.cc_min >= 90 ? single(bus * .85) : bus;
}

// Algorithm bandwidth over bus bandwidth.
float ratio(const TuningInput& in, const Variant& v) {
  if (v.algorithm != Algorithm::kRing && is_gather(v.function)) return 1.0F;
  if (is_nvls(v.algorithm) && in.constants.nvls_rule != NvlsRule::kEfficiency) {
    return single(5.0 / 6.0);
  }
  if (v.algorithm == Algorithm::kRing || is_nvls(v.algorithm)) {
    return single(1.0 * in.shape.n_ranks / ring_steps(v.function, in.shape.n_ranks));
  }
  return .5F;
}

}  // namespace

float bandwidth_gbps(const TuningInput& in, const Variant& v) {
  const int n = graph_of(in.shape, v.algorithm).n_channels;
  float bus = static_cast<float>(n) * channel_bandwidth(in, v);
  switch (v.algorithm) {
    case Algorithm::kRing:
      bus = ring_bus(in, v, bus);
      break;
    case Algorithm::kTree:
      bus = tree_bus(in, v, bus);
      break;
    case Algorithm::kPat:
      bus = single(bus * .75);
      break;
    case Algorithm::kCollnetDirect:
      bus = collnet_direct_bus(in, v, bus);
      break;
    default:
      break;
  }
  return bus * ratio(in, v);
}

}  // namespace rehearse::sim
