// SPDX-License-Identifier: Apache-2.0
// NCCL's cost table of one communicator: latency and bandwidth of every function, algorithm and
// protocol (NCCL 2.28.9 ncclTopoTuneModel; NCCL model §3). What it predicts is what NCCL believes,
// not what a machine does: use it for choices, not for times. Checked cell by cell against
// tests/golden/nccl. NCCL computes in single precision and rounds at every assignment; so do we,
// because a tie is decided by the last bit.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/nccl/constants.hpp"
#include "sim/nccl/names.hpp"
#include "sim/nccl/settings.hpp"
#include "sim/nccl/shape.hpp"

namespace rehearse::sim {

// One cell of the table.
struct Variant {
  Function function = Function::kAllReduce;  // one of kCollectives
  Algorithm algorithm = Algorithm::kRing;
  Protocol protocol = Protocol::kSimple;

  bool operator==(const Variant&) const = default;
  // In the order of all_variants.
  std::strong_ordering operator<=>(const Variant& other) const { return rank() <=> other.rank(); }

  [[nodiscard]] std::size_t rank() const {
    return (index_of(function) * kAlgorithmCount + index_of(algorithm)) * kProtocolCount +
           index_of(protocol);
  }
};

// Every cell: by function, then algorithm, then protocol.
[[nodiscard]] std::vector<Variant> all_variants();

// "AllReduce RING LL128".
[[nodiscard]] std::string to_string(const Variant& variant);

struct Cost {
  float latency_us = 0;
  float bandwidth_gbps = 0;  // bytes of the call / time, 10⁹ B/s; 0: not available

  [[nodiscard]] bool available() const { return bandwidth_gbps > 0; }
};

class TuningTable {
 public:
  [[nodiscard]] const Cost& at(const Variant& v) const {
    return costs_[index_of(v.function)][index_of(v.algorithm)][index_of(v.protocol)];
  }
  void set(const Variant& v, Cost cost) {
    costs_[index_of(v.function)][index_of(v.algorithm)][index_of(v.protocol)] = cost;
  }

 private:
  std::array<std::array<std::array<Cost, kProtocolCount>, kAlgorithmCount>, kCollectiveCount>
      costs_{};
};

// What the table is computed from. Refers to its parts; they outlive it.
struct TuningInput {
  const CommShape& shape;  // checked by check_shape
  const Settings& settings;
  const Constants& constants;
};

// With one rank there is no table: every cell is unavailable.
[[nodiscard]] TuningTable build_tuning_table(const TuningInput& input);

// The parts of it, NCCL model §3.1 to §3.3. Meaningful for more than one rank.
[[nodiscard]] bool is_available(const TuningInput& input, const Variant& variant);
// Why a cell is not available, in words; empty when it is.
[[nodiscard]] std::string_view refusal(const TuningInput& input, const Variant& variant);
[[nodiscard]] float bandwidth_gbps(const TuningInput& input, const Variant& variant);
[[nodiscard]] float latency_us(const TuningInput& input, const Variant& variant);

// Steps of the ring of a function: 2(n−1) for AllReduce, n−1 for AllGather and ReduceScatter, else
// n.
[[nodiscard]] int ring_steps(Function function, int n_ranks);

// The index of a ScaleTable's column: 0, 1 or 2 for 1, 2 or more nodes.
[[nodiscard]] std::size_t scale_of(int n_nodes);

[[nodiscard]] inline bool is_gather(Function function) {
  return function == Function::kAllGather || function == Function::kReduceScatter;
}
[[nodiscard]] inline bool is_collnet(Algorithm algorithm) {
  return algorithm == Algorithm::kCollnetDirect || algorithm == Algorithm::kCollnetChain;
}
[[nodiscard]] inline bool is_nvls(Algorithm algorithm) {
  return algorithm == Algorithm::kNvls || algorithm == Algorithm::kNvlsTree;
}

}  // namespace rehearse::sim
