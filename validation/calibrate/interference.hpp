// SPDX-License-Identifier: Apache-2.0
// What kernels lose beside a collective, as a trace of several steps tells it. Kernels of one name have many sizes, so a
// kernel is compared with itself: the nth of its name that a step launches, in steps where a collective ran beside it and
// in steps where none did. The slowdown is the median of the ratios, by the time of each kernel alone; its range
// is drawn over kernels. Undetermined where few kernels met both, or where they disagree; the model's rate (sim/replay/contention.hpp)
// then stays. Deterministic.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "sim/proto/patch.pb.h"
#include "traces/model/trace.hpp"

namespace rehearse::validation {

struct Interference {
  size_t kernels = 0;  // that met both
  bool determined = false;
  bool at_bound = false;     // physics stopped it: no kernel gets faster, none loses more than half
  double slowdown = 1;       // time beside over time alone, 1 to kMostSlowdown
  double low = 1, high = 1;  // 90 %
  std::string why;           // where it is undetermined
};
constexpr double kMostSlowdown = 2;  // sim::rate_beside goes no further

[[nodiscard]] Interference interference(const traces::Trace& trace);

// States what is determined in an overlay: value, range, and a value more in each of its draws.
void add_interference(const Interference& found, uint64_t seed, pb::Patch& overlay);

}  // namespace rehearse::validation
