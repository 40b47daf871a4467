// SPDX-License-Identifier: Apache-2.0
// The program that a run replays: that of the trace with everything that the scenario changes in it. A run that changes
// nothing shares the prepared one (sim/prepared.hpp).
#pragma once

#include <memory>
#include <vector>

#include "base/error.hpp"
#include "sim/scenario/scenario.hpp"
#include "traces/program/program.hpp"

namespace rehearse::sim {

struct RunProgram {
  std::shared_ptr<const traces::Program> program;
  std::vector<bool> grew;  // by communicator, see sim/scenario/grow.hpp
};

// The scenario is as it came up.
[[nodiscard]] Result<RunProgram> program_of_run(const Scenario& scenario);

}  // namespace rehearse::sim
