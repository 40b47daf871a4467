// SPDX-License-Identifier: Apache-2.0
#include "sim/nccl/call.hpp"

#include <string>

#include "sim/nccl/tuning.hpp"

namespace rehearse::sim {

namespace {
constexpr std::int64_t kMaxBytes = std::int64_t{1} << 48;
}

std::int64_t payload_bytes(const Call& call) { return call.count * size_of(call.type); }

std::int64_t total_bytes(const Call& call, int n_ranks) {
  return payload_bytes(call) * (is_gather(call.function) ? n_ranks : 1);
}

std::int64_t traffic_per_byte(Function function, int n_ranks) {
  if (function == Function::kAllReduce) return 2;
  return is_gather(function) ? n_ranks : 1;
}

Result<void> check_call(const Call& call, int n_ranks) {
  if (index_of(call.function) >= kCollectiveCount) {
    return fail(Code::kBadInput,
                std::string(name_of(call.function)) + " is point-to-point and has no cost table",
                {}, "plan it as a transfer between two ranks");
  }
  if (call.count < 0 || call.count > kMaxBytes / size_of(call.type) / n_ranks) {
    return fail(Code::kBadInput,
                "a count of " + std::to_string(call.count) + " elements is not possible");
  }
  if (call.pipe_ops < 1) return fail(Code::kBadInput, "pipe_ops is below 1");
  return {};
}

}  // namespace rehearse::sim
