// SPDX-License-Identifier: Apache-2.0
// An NCCL kernel's recorded duration is mostly waiting for the slowest rank. For collectives that no
// member leaves before the last has come, the time from a rank's start to the last start is wait and
// the rest transfer. Times of ranks must be aligned (traces/import/clock.hpp).
#pragma once

#include "traces/model/trace.hpp"
#include "traces/program/program.hpp"

namespace rehearse::traces {

// Ends only after all members arrived. Rooted and point-to-point calls end per rank.
[[nodiscard]] bool synchronises(Collective collective);

// Fills RankProgram::call_split of every rank.
void split_calls(const Trace& trace, Program& program);

}  // namespace rehearse::traces
