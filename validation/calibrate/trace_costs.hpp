// SPDX-License-Identifier: Apache-2.0
// What a trace itself says of costs that are not of collectives: host launches, the start of kernels, copy engines by direction.
// A replay takes these from the recorded operations, so they are measured here and not fitted; they tell how the recorded
// machine compares with the model's priors. Medians with quartiles; a cost with too few operations is undetermined. Pure functions.
#pragma once

#include <string>
#include <vector>

#include "traces/model/trace.hpp"

namespace rehearse::validation {

struct TraceCost {
  std::string what;  // "launch of a kernel on the host"
  std::string unit;  // "us", "GB/s"
  size_t n = 0;      // operations behind it
  bool determined = false;
  double median = 0, low = 0, high = 0;  // quartiles
  std::string note;                      // what is missing where it is undetermined
};

// Always the same costs in the same order.
[[nodiscard]] std::vector<TraceCost> trace_costs(const traces::Trace& trace);

}  // namespace rehearse::validation
