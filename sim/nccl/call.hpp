// SPDX-License-Identifier: Apache-2.0
// One collective call as the application makes it. Values only.
#pragma once

#include <cstdint>

#include "base/error.hpp"
#include "sim/nccl/data_type.hpp"
#include "sim/nccl/names.hpp"

namespace rehearse::sim {

struct Call {
  Function function = Function::kAllReduce;  // one of kCollectives
  std::int64_t count = 0;                    // elements; per rank for AllGather and ReduceScatter
  DataType type = DataType::kFloat32;
  ReduceOp op = ReduceOp::kSum;  // of no meaning for Broadcast and AllGather
  // How many collectives of its group share one channel: ⌈calls of the group / channels⌉.
  int pipe_ops = 1;
  bool nvls_registered = false;     // user buffers registered for NVLink multicast
  bool network_registered = false;  // user buffers registered with the network
  std::uint32_t root = 0;           // of Broadcast and Reduce
};

// Bytes of the caller's count.
[[nodiscard]] std::int64_t payload_bytes(const Call& call);

// The size NCCL decides by: of the larger of the two buffers of one rank.
[[nodiscard]] std::int64_t total_bytes(const Call& call, int n_ranks);

// Bytes that cross a channel per payload byte: 2 for AllReduce, n_ranks for AllGather and
// ReduceScatter, else 1.
[[nodiscard]] std::int64_t traffic_per_byte(Function function, int n_ranks);

// Code::kBadInput for point-to-point functions, negative counts, pipe_ops below one and sizes
// above 2⁴⁸ bytes.
[[nodiscard]] Result<void> check_call(const Call& call, int n_ranks);

}  // namespace rehearse::sim
