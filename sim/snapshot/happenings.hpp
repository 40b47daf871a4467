// SPDX-License-Identifier: Apache-2.0
// What ranks do that others can see, in order of time, from a run that was replayed to its end.
#pragma once

#include <utility>
#include <vector>

#include "sim/outcome/outcome.hpp"
#include "sim/proto/snapshot.pb.h"

namespace rehearse::sim {

// The time of the nth moment after `from` (n negative: before it) at which something happens and no later than `last`,
// and everything that happens on the way, ends included; where there are fewer, the farthest. n = 0: `from` itself.
struct Passage {
  Nanos to = 0;
  std::vector<pb::Happening> events;  // by time and rank
};
[[nodiscard]] Passage passage(const Evidence& evidence, Nanos from, int64_t n, Nanos last);

}  // namespace rehearse::sim
