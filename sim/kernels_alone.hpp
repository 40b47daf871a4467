// SPDX-License-Identifier: Apache-2.0
// Kernels of ranks that no longer communicate. A kernel that was recorded beside a collective was recorded slowed by it
// (sim/replay/contention.hpp); where the collectives are gone, so is what they took. How much that was follows from the
// calls as they were recorded, on the platform of the run.
#pragma once

#include "base/error.hpp"
#include "sim/scenario/scenario.hpp"
#include "traces/program/program.hpp"

namespace rehearse::sim {

// Before the communicators of the program are taken apart.
[[nodiscard]] Result<void> free_kernels(const Scenario& scenario, traces::Program& program);

}  // namespace rehearse::sim
