// SPDX-License-Identifier: Apache-2.0
// The latency column of the cost table (NCCL 2.28.9; NCCL model §3.3).
//   intra    one hop inside a node, µs      q      whole ranks per node
//   inter    one hop between nodes, µs      x      hops of a ring that cross nodes
// Assignments round to single precision where NCCL's do.
#include <algorithm>

#include "sim/nccl/rounding.hpp"
#include "sim/nccl/tuning.hpp"

namespace rehearse::sim {

namespace {

float hardware_latency(const TuningInput& in, Hardware hardware, const Variant& v) {
  // On POWER the tree is not worse than the ring over PCI.
  const bool as_ring = in.shape.cpu_arch == CpuArch::kPower && hardware == Hardware::kPci &&
                       v.algorithm == Algorithm::kTree && v.protocol == Protocol::kSimple;
  const Algorithm row = as_ring ? Algorithm::kRing : v.algorithm;
  return static_cast<float>(
      in.constants.hardware_latency[index_of(hardware)][index_of(row)][index_of(v.protocol)]);
}

// Only NVLink itself counts as NVLink: LOC, NVB and C2C paths are priced as PCI.
Hardware intra_hardware(const TuningInput& in, Algorithm algorithm) {
  const PathType type = graph_of(in.shape, algorithm).type_intra;
  return type == PathType::kNvl ? Hardware::kNvlink : Hardware::kPci;
}

// The NIC's latency counts twice for SIMPLE, which flushes.
float inter_latency(const TuningInput& in, const Variant& v) {
  Variant row = v;
  if (in.constants.alone_pays_tree_latency && in.shape.n_ranks == in.shape.n_nodes) {
    row.algorithm = Algorithm::kTree;
  }
  const float nic = static_cast<float>(graph_of(in.shape, v.algorithm).latency_inter_us);
  float inter = hardware_latency(in, Hardware::kNet, row);
  inter += nic;
  if (v.protocol == Protocol::kSimple) inter += nic;
  return inter;
}

// What a post to the network costs the host per step.
float net_overhead(const TuningInput& in, Protocol protocol) {
  const CommShape& shape = in.shape;
  if (shape.n_nodes == 1) return 0;
  const float overhead =
      static_cast<float>(in.settings.net_overhead_us.value_or(network_post_us(shape)));
  return protocol == Protocol::kSimple ? overhead * 3 : overhead;
}

float ring_latency(const TuningInput& in, const Variant& v, float base) {
  const CommShape& shape = in.shape;
  const int steps = ring_steps(v.function, shape.n_ranks);
  const Hardware inside = intra_hardware(in, Algorithm::kRing);
  if (v.function == Function::kBroadcast || v.function == Function::kReduce) {
    const Hardware here = shape.n_nodes == 1 ? inside : Hardware::kNet;
    if (shape.ring.same_channels) return base + hardware_latency(in, here, v);
    Variant row = v;
    if (v.protocol == Protocol::kSimple) row.algorithm = Algorithm::kTree;
    return base + static_cast<float>(steps) * hardware_latency(in, here, row);
  }
  const float intra = std::max(hardware_latency(in, inside, v), net_overhead(in, v.protocol));
  int crossings = shape.n_nodes - 1;
  if (v.function == Function::kAllReduce) {
    crossings *= 2;
    if (!in.constants.ring_closes_inside && shape.n_nodes > 1) crossings += 2;
  }
  return base + (static_cast<float>(steps - crossings) * intra +
                 static_cast<float>(crossings) * inter_latency(in, v));
}

}  // namespace

float latency_us(const TuningInput& in, const Variant& v) {
  const CommShape& shape = in.shape;
  const float base =
      static_cast<float>(in.constants.base_latency[index_of(v.algorithm)][index_of(v.protocol)]);
  if (v.algorithm == Algorithm::kRing) return ring_latency(in, v, base);

  const float intra = hardware_latency(in, intra_hardware(in, v.algorithm), v);
  const float inter = inter_latency(in, v);
  const int others = shape.n_ranks / shape.n_nodes - 1;
  const float depth = static_cast<float>(floor_log2(shape.n_nodes));
  switch (v.algorithm) {
    case Algorithm::kTree:
      return base + 2 * (static_cast<float>(others) * intra + depth * inter);
    case Algorithm::kCollnetDirect:
      // 0.4 µs per peer for serving them one after another.
      return static_cast<float>(
          base + (2 * (static_cast<float>(std::min(1, others)) * intra + others * 0.4) + inter));
    case Algorithm::kCollnetChain:
      return base + (static_cast<float>(2 * others) * intra + inter);
    case Algorithm::kNvls:
      return shape.n_nodes > 1 ? intra + inter : intra;
    case Algorithm::kNvlsTree:
      return base + (intra + 2 * depth * inter);
    default:  // PAT, which still has a part linear in the ranks
      return static_cast<float>(base + (depth * (inter / 3.5) + shape.n_ranks * 2.8));
  }
}

}  // namespace rehearse::sim
