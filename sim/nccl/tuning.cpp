// SPDX-License-Identifier: Apache-2.0
#include "sim/nccl/tuning.hpp"

#include <algorithm>

namespace rehearse::sim {

std::vector<Variant> all_variants() {
  std::vector<Variant> variants;
  variants.reserve(kCollectiveCount * kAlgorithmCount * kProtocolCount);
  for (const Function f : kCollectives) {
    for (const Algorithm a : kAlgorithms) {
      for (const Protocol p : kProtocols) variants.push_back({f, a, p});
    }
  }
  return variants;
}

std::string to_string(const Variant& v) {
  return std::string(name_of(v.function)) + " " + std::string(name_of(v.algorithm)) + " " +
         std::string(name_of(v.protocol));
}

TuningTable build_tuning_table(const TuningInput& input) {
  TuningTable table;
  if (input.shape.n_ranks <= 1) return table;
  for (const Variant& variant : all_variants()) {
    if (!is_available(input, variant)) continue;
    table.set(variant, {latency_us(input, variant), bandwidth_gbps(input, variant)});
  }
  return table;
}

int ring_steps(Function function, int n_ranks) {
  if (function == Function::kAllReduce) return 2 * (n_ranks - 1);
  return is_gather(function) ? n_ranks - 1 : n_ranks;
}

std::size_t scale_of(int n_nodes) { return static_cast<std::size_t>(std::min(n_nodes, 3) - 1); }

}  // namespace rehearse::sim
