// SPDX-License-Identifier: Apache-2.0
// Random parameters of a fault in a job: ranks, nodes and devices that it has, a moment of its run, usual
// values as the catalogue has them (evenly on a logarithmic scale). Deterministic for a stream.
#pragma once

#include "base/random.hpp"
#include "faults/fault_use.hpp"

namespace rehearse::validation {

struct DrawFrom {
  const pb::Scenario& document;  // expanded
  int64_t duration = 0;          // of the healthy run, in nanoseconds
};

[[nodiscard]] faults::FaultUse draw_use(const std::shared_ptr<const faults::FaultEntry>& entry,
                                        const DrawFrom& from, Random& random);

}  // namespace rehearse::validation
