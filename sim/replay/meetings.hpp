// SPDX-License-Identifier: Apache-2.0
// Which calls of different ranks belong together, decided before the replay from the program alone.
#pragma once

#include "sim/replay/replay.hpp"

namespace rehearse::sim {

// Fills `meetings` and `meeting_of` of `out`. Collectives meet by (communicator, sequence); a send
// and a recv by (communicator, sender, receiver, sequence among those). Members that the program
// does not hold are taken to be on time.
void arrange_meetings(const traces::Program& program, Replayed& out);

// Do two members' views of one collective agree, as NCCL needs them to?
[[nodiscard]] bool agree(const traces::Call& a, const traces::Call& b);

}  // namespace rehearse::sim
