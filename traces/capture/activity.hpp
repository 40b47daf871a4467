// SPDX-License-Identifier: Apache-2.0
// CUPTI's door: switches activity recording on, hands buffers out and turns what comes back into records of
// the trace. Buffers come back on CUPTI's thread or on ours, in any order.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rehearse::capture::activity {

// Once, when the driver initialises; false after a message, and the other doors go on.
[[nodiscard]] bool start();
// Steps to record began: kinds are switched on if they are not.
void stretch_began();
// Ties what is launched on this thread from now on to event `id` of NCCL, and no longer.
void begin_launch(uint64_t id);
void end_launch();

}  // namespace rehearse::capture::activity
