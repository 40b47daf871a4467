// SPDX-License-Identifier: Apache-2.0
// What one entry of a flight recorder's dump says. Pure.
#pragma once

#include <algorithm>
#include <cstdint>

#include "traces/proto/evidence.pb.h"

namespace rehearse::faults {

// The call has not ended. PyTorch retires entries of calls that it has seen end, also where the state was not written.
[[nodiscard]] inline bool is_pending(const pb::FlightEntry& entry) {
  return entry.state() != "completed" && !entry.retired() && !entry.has_completed_ns();
}

// Of all tensors together, as PyTorch's NumelIn and NumelOut. Sizes in a dump are whatever somebody wrote there: 0 for
// what cannot be, at most 2^62.
[[nodiscard]] inline int64_t elements_of(
    const google::protobuf::RepeatedPtrField<pb::FlightTensor>& tensors) {
  double sum = 0;
  for (const pb::FlightTensor& tensor : tensors) {
    double product = 1;
    for (const int64_t size : tensor.sizes()) product *= static_cast<double>(size);
    sum += product;
  }
  return sum > 0 ? static_cast<int64_t>(std::min(sum, 0x1p62)) : 0;
}

}  // namespace rehearse::faults
