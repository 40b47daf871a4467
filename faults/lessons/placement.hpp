// SPDX-License-Identifier: Apache-2.0
// Where a seed puts the fault of a lab: every student may get another one. Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "faults/fault_use.hpp"
#include "faults/proto/lab.pb.h"

namespace rehearse::faults {

struct LabEntry;

// The words that a placing chooses from, ranges written out. kBadInput when the fault has no such parameter, a value
// is not one of its kind, or there is none.
[[nodiscard]] Result<std::vector<std::string>> values_of(const pb::Placing& placing,
                                                         const pb::Fault& fault);

// The lab's fault with the values that the seed chooses. The same seed chooses the same in every version of a lab
// that has the same values.
[[nodiscard]] Result<FaultUse> place_fault(const LabEntry& lab, uint64_t seed);

}  // namespace rehearse::faults
