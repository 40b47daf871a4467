// SPDX-License-Identifier: Apache-2.0
// Calls of a rank that become several calls one after the other, another one, or none.
#pragma once

#include <map>
#include <vector>

#include "base/error.hpp"
#include "traces/program/program.hpp"

namespace rehearse::sim {

struct CallCut {
  std::vector<traces::Call>
      parts;       // in their order; the last takes the place of the call; none: it is gone
  Nanos wait = 0;  // before the first of them
};

// By operation of the call. Everything the call waited for the first part waits for, and what waited for the call waits
// for the last. A call that is gone leaves an operation without time, so that what it waited for still comes first. The
// rank is written out (rebuild.hpp).
[[nodiscard]] Result<void> cut_calls(traces::RankProgram& rank, uint32_t steps,
                                     const std::map<traces::OpId, CallCut>& cuts);

}  // namespace rehearse::sim
