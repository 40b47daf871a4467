// SPDX-License-Identifier: Apache-2.0
// NCCL_LAUNCH_ORDER_IMPLICIT (since 2.26): NCCL orders the operations of
// different communicators on one device as the host issued them
// (src/enqueue.cc, getImplicitOrder). Where CUDA is older than 12.3 each waits
// for the end of the one before, on whatever stream it is; from 12.3 on only
// launches are ordered, operations overlap as before. Ranks that issue in
// different orders then wait for each other without end also where streams
// would have let both run. NCCL_LAUNCH_RACE_FATAL: with it, two threads of a
// process that launch at once end it.
#pragma once

#include "base/error.hpp"
#include "sim/scenario/scenario.hpp"
#include "traces/program/program.hpp"

namespace rehearse::sim {

// Adds the waits to ranks that have the variable. A node says its CUDA under
// `versions`; without a word it is a current one. Findings of the program:
// "nccl-launch-order" where operations are serialised, "nccl-launch-race" for
// ranks whose calls come from several threads.
[[nodiscard]] bool orders_launches(const pb::Launch& launch);  // false: it would add nothing
[[nodiscard]] Result<void> order_launches(const Scenario& scenario, traces::Program& program);

}  // namespace rehearse::sim
