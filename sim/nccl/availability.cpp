// SPDX-License-Identifier: Apache-2.0
// Which cells of the cost table exist at all, and why others do not (NCCL 2.28.9; NCCL model §3.1).
#include "sim/nccl/tuning.hpp"

namespace rehearse::sim {

namespace {

constexpr std::string_view kYes = {};

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
std::string_view pat_refusal(const TuningInput& in) {
  if (!in.constants.has_pat) return "this version of NCCL has no PAT";
  if (in.shape.cc_min < 60) return "PAT needs compute capability 6.0";
  if (in.settings.pat_enable == 0) return "NCCL_PAT_ENABLE=0";
  if (in.settings.pat_enable != 2) return kYes;
  if (in.shape.n_nodes != in.shape.n_ranks) return "PAT runs with one rank per node";
  return in.shape.host_network ? kYes : "PAT needs a network device on the host";
}

// Rule 5: between nodes every rank needs a head of its own.
std::string_view gather_refusal(const CommShape& shape, const Variant& v) {
  if (!shape.collnet) return "between nodes it needs CollNet (NCCL_COLLNET_ENABLE=1)";
  if ((v.function == Function::kAllGather && !shape.collnet_allgather) ||
      (v.function == Function::kReduceScatter && !shape.collnet_reducescatter)) {
    return "the CollNet plugin does not offer it";
  }
  const int heads = v.algorithm == Algorithm::kNvls ? shape.nvls_heads : shape.collnet_heads;
  return shape.ranks_per_node <= heads ? kYes : "a node has more ranks than heads";
}

// Rules 2 to 5.
std::string_view algorithm_refusal(const TuningInput& in, const Variant& v) {
  const CommShape& shape = in.shape;
  switch (v.algorithm) {
    case Algorithm::kNvls:
      if (!in.constants.has_nvls) return "this version of NCCL has no NVLink SHARP";
      if (shape.n_nodes > 1 && !shape.collnet) {
        return "between nodes it needs CollNet (NCCL_COLLNET_ENABLE=1)";
      }
      break;
    case Algorithm::kNvlsTree:
      if (!in.constants.has_nvls_tree) return "this version of NCCL has no NVLSTree";
      if (shape.n_nodes == 1) return "it is for several nodes";
      break;
    case Algorithm::kPat:
      return pat_refusal(in);
    case Algorithm::kCollnetDirect:
      if (!shape.collnet) return "CollNet is not enabled (NCCL_COLLNET_ENABLE=1 and a plugin)";
      if (!shape.nvswitch) return "it needs NVSwitch";
      break;
    case Algorithm::kCollnetChain:
      return shape.collnet ? kYes : "CollNet is not enabled (NCCL_COLLNET_ENABLE=1 and a plugin)";
    default:
      return kYes;
  }
  if (is_nvls(v.algorithm) && in.constants.nvls_rule == NvlsRule::kEfficiency &&
      shape.nvls.n_channels < 2) {
    return "no NVLink SHARP graph (NVSwitch of Hopper or newer, two GPUs of a node)";
  }
  return is_gather(v.function) && shape.n_nodes > 1 ? gather_refusal(shape, v) : kYes;
}

// Rule 6: LL128 needs 128-byte stores to arrive whole on every hop.
std::string_view ll128_refusal(const TuningInput& in, const Variant& v) {
  const CommShape& shape = in.shape;
  const GraphInfo& graph = graph_of(shape, v.algorithm);
  const bool beyond_pxb = shape.cc_min >= 90 && in.settings.ll128_c2c;
  if (graph.type_inter > (beyond_pxb ? PathType::kPxn : PathType::kPxb)) {
    return "LL128 needs a nearer network adapter (path type)";
  }
  if (graph.type_intra > PathType::kNvb) return "LL128 needs NVLink inside the node";
  const bool mixed = shape.cc_min != shape.cc_max;
  if (mixed && !(in.constants.ll128_mixes_hopper && shape.cc_min >= 90)) {
    return "LL128 needs equal GPUs";
  }
  if (shape.cc_min < 70) return "LL128 needs compute capability 7.0";
  if (shape.cc_min >= 90 && !in.constants.ll128_hopper) {
    return "this version of NCCL has no LL128 on Hopper";
  }
  return shape.cc_min == 90 && shape.built_with_cuda_11_8 && v.function == Function::kAllReduce &&
                 v.algorithm == Algorithm::kRing && shape.n_ranks == 2
             ? "LL128 of two Hopper GPUs is off with CUDA 11.8"
             : kYes;
}

bool switched_off(const TuningInput& in, Function function, Algorithm algorithm) {
  return in.settings.algorithms[index_of(function)][index_of(algorithm)] == Switch::kOff;
}

// NCCL_ALGO names no algorithm at all that is there without CollNet: before 2.24 NCCL then ignores the list, as it
// does NCCL_ALGO=CollNet where no plugin offers it, and takes Ring and Tree.
bool ignored(const TuningInput& in, Function function) {
  if (in.shape.collnet) return false;
  const Algorithm in_switches = in.shape.n_nodes > 1 ? Algorithm::kNvlsTree : Algorithm::kNvls;
  return switched_off(in, function, Algorithm::kTree) &&
         switched_off(in, function, Algorithm::kRing) && switched_off(in, function, in_switches);
}

// NCCL_ALGO names nothing that serves this function here.
bool left_without(const TuningInput& in, Function function) {
  for (std::size_t a = 0; a < kAlgorithmCount; ++a) {
    const auto algorithm = static_cast<Algorithm>(a);
    const Variant v{function, algorithm, Protocol::kSimple};
    if (has_kernel(function, algorithm) && !switched_off(in, function, algorithm) &&
        algorithm_refusal(in, v).empty()) {
      return false;
    }
  }
  return true;
}

}  // namespace

std::string_view refusal(const TuningInput& in, const Variant& v) {
  if (!has_kernel(v.function, v.algorithm)) return "NCCL has no such kernel";
  const bool simple_only = v.algorithm != Algorithm::kTree && v.algorithm != Algorithm::kRing;
  if (simple_only && v.protocol != Protocol::kSimple) return "it has the SIMPLE protocol only";
  if (const auto why = algorithm_refusal(in, v); !why.empty()) return why;
  const std::size_t f = index_of(v.function);
  const bool ring = v.algorithm == Algorithm::kRing;
  const bool tree = v.algorithm == Algorithm::kTree;
  const bool stands_in = in.constants.ring_stands_in && ((ring && left_without(in, v.function)) ||
                                                         (tree && ignored(in, v.function)));
  if (switched_off(in, v.function, v.algorithm) && !stands_in) {
    return "switched off by NCCL_ALGO";
  }
  const Switch protocol = in.settings.protocols[f][index_of(v.protocol)];
  if (protocol == Switch::kOff) return "switched off by NCCL_PROTO";
  // Rule 7: a protocol list that leaves LL128 on overrules rule 6, at the user's risk.
  if (v.protocol != Protocol::kLl128 || protocol == Switch::kOn) return kYes;
  return ll128_refusal(in, v);
}

bool is_available(const TuningInput& in, const Variant& v) { return refusal(in, v).empty(); }

}  // namespace rehearse::sim
