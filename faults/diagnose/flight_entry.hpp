// SPDX-License-Identifier: Apache-2.0
// What one entry of a flight recorder's dump says. Pure.
#pragma once

#include "traces/proto/evidence.pb.h"

namespace rehearse::faults {

// The call has not ended. PyTorch retires entries of calls that it has seen end, also where the state was not written.
[[nodiscard]] inline bool is_pending(const pb::FlightEntry& entry) {
  return entry.state() != "completed" && !entry.retired() && !entry.has_completed_ns();
}

}  // namespace rehearse::faults
