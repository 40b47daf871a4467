// SPDX-License-Identifier: Apache-2.0
// A program with the transfers that were recorded: how long a step takes when every gap and duration is
// as the program has it and collectives end together after their last member. Not a simulation: nothing
// shares links. Used to fit what a recording does to the run it records.
#pragma once

#include "base/units.hpp"
#include "traces/program/program.hpp"

namespace rehearse::traces {

// Mean over steps and ranks of the time from the end of one step's work to the next one's, the first
// step from 0; 0 without steps or when the program waits for itself.
[[nodiscard]] Nanos recorded_step(const Program& program);

}  // namespace rehearse::traces
