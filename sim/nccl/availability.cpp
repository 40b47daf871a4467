// SPDX-License-Identifier: Apache-2.0
// Which cells of the cost table exist at all (NCCL 2.28.9; NCCL model §3.1).
#include "sim/nccl/tuning.hpp"

namespace rehearse::sim {

namespace {

// Rule 1.
bool has_kernel(Function function, Algorithm algorithm) {
  switch (function) {
    case Function::kAllReduce:
      return algorithm != Algorithm::kPat;
    case Function::kAllGather:
    case Function::kReduceScatter:
      return algorithm == Algorithm::kRing || algorithm == Algorithm::kPat ||
             algorithm == Algorithm::kNvls || algorithm == Algorithm::kCollnetDirect;
    default:
      return algorithm == Algorithm::kRing;
  }
}

// Rule 3.
bool pat_is_on(const TuningInput& in) {
  if (!in.constants.has_pat || in.shape.cc_min < 60) return false;
  if (in.settings.pat_enable != 2) return in.settings.pat_enable != 0;
  return in.shape.n_nodes == in.shape.n_ranks && in.shape.host_network;
}

// Rule 5: between nodes every rank needs a head of its own.
bool gather_has_heads(const CommShape& shape, const Variant& v) {
  if (!shape.collnet) return false;
  if (v.function == Function::kAllGather && !shape.collnet_allgather) return false;
  if (v.function == Function::kReduceScatter && !shape.collnet_reducescatter) return false;
  const int heads = v.algorithm == Algorithm::kNvls ? shape.nvls_heads : shape.collnet_heads;
  return shape.ranks_per_node <= heads;
}

// Rules 2 to 5.
bool algorithm_fits(const TuningInput& in, const Variant& v) {
  const CommShape& shape = in.shape;
  switch (v.algorithm) {
    case Algorithm::kNvls:
      if (shape.n_nodes > 1 && !shape.collnet) return false;
      break;
    case Algorithm::kNvlsTree:
      if (shape.n_nodes == 1) return false;
      break;
    case Algorithm::kPat:
      return pat_is_on(in);
    case Algorithm::kCollnetDirect:
      if (!shape.collnet || !shape.nvswitch) return false;
      break;
    case Algorithm::kCollnetChain:
      return shape.collnet;
    default:
      return true;
  }
  if (is_nvls(v.algorithm) && in.constants.nvls_rule == NvlsRule::kEfficiency &&
      shape.nvls.n_channels < 2) {
    return false;
  }
  return !(is_gather(v.function) && shape.n_nodes > 1) || gather_has_heads(shape, v);
}

// Rule 6: LL128 needs 128-byte stores to arrive whole on every hop.
bool ll128_is_safe(const TuningInput& in, const Variant& v) {
  const CommShape& shape = in.shape;
  const GraphInfo& graph = graph_of(shape, v.algorithm);
  const bool beyond_pxb = shape.cc_min >= 90 && in.settings.ll128_c2c;
  if (graph.type_inter > (beyond_pxb ? PathType::kPxn : PathType::kPxb)) return false;
  if (graph.type_intra > PathType::kNvb) return false;
  const bool mixed = shape.cc_min != shape.cc_max;
  if (mixed && !(in.constants.ll128_mixes_hopper && shape.cc_min >= 90)) return false;
  if (shape.cc_min < 70) return false;
  return !(shape.cc_min == 90 && shape.built_with_cuda_11_8 && v.function == Function::kAllReduce &&
           v.algorithm == Algorithm::kRing && shape.n_ranks == 2);
}

}  // namespace

bool is_available(const TuningInput& in, const Variant& v) {
  if (!has_kernel(v.function, v.algorithm)) return false;
  const bool simple_only = v.algorithm != Algorithm::kTree && v.algorithm != Algorithm::kRing;
  if (simple_only && v.protocol != Protocol::kSimple) return false;
  if (!algorithm_fits(in, v)) return false;
  const std::size_t f = index_of(v.function);
  if (in.settings.algorithms[f][index_of(v.algorithm)] == Switch::kOff) return false;
  const Switch protocol = in.settings.protocols[f][index_of(v.protocol)];
  if (protocol == Switch::kOff) return false;
  // Rule 7: a protocol list that leaves LL128 on overrules rule 6, at the user's risk.
  return v.protocol != Protocol::kLl128 || protocol == Switch::kOn || ll128_is_safe(in, v);
}

}  // namespace rehearse::sim
