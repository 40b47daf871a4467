// SPDX-License-Identifier: Apache-2.0
// The chain of operations that decided when a run ended, stretch by stretch from its end to its beginning.
#pragma once

#include <functional>

#include "sim/outcome/outcome.hpp"

namespace rehearse::sim {

struct PathStretch {
  static constexpr uint32_t kOwnWork = UINT32_MAX;
  size_t rank = 0;  // position in Program::ranks
  OpId op = 0;
  uint32_t shape = kOwnWork;  // a call that moves data: index into Replayed::shapes
  Nanos from = 0;
  Nanos to = 0;
};

// Nothing of a run in which nothing ended.
void walk_critical_path(const Evidence& evidence,
                        const std::function<void(const PathStretch&)>& see);

}  // namespace rehearse::sim
