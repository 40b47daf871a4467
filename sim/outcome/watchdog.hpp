// SPDX-License-Identifier: Apache-2.0
// What the framework does about a call that does not end, and what it prints. Timers are the
// frameworks' own: PyTorch's NCCL watchdog 10 min (torch/distributed/constants.py), Horovod's stall
// warning 60 s (HOROVOD_STALL_CHECK_TIME_SECONDS), TensorFlow none.
#pragma once

#include "base/units.hpp"
#include "sim/proto/outcome.pb.h"
#include "sim/proto/scenario.pb.h"

namespace rehearse::sim {

struct Watchdog {
  pb::Framework framework = pb::FRAMEWORK_UNSPECIFIED;
  Nanos timeout = 0;  // 0: waits for ever
};

[[nodiscard]] Watchdog watchdog_of(const pb::Launch& launch);

// Adds error_text for the waits of `out`.
void fill_watchdog_text(const Watchdog& watchdog, pb::Outcome& out);

}  // namespace rehearse::sim
