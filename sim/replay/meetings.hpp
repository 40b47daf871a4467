// SPDX-License-Identifier: Apache-2.0
// Which calls of different ranks belong together, decided before the replay from the program alone.
#pragma once

#include "sim/replay/replay.hpp"

namespace rehearse::sim {

// Fills `meetings`, `meeting_of` and the calls of each meeting of `out`. Collectives meet by
// (communicator, sequence); a send and a recv by (communicator, sender, receiver, sequence among
// those). Members that the program does not hold are taken to be on time, and so are those whose numbers of calls have
// gaps: recordings of samples leave out calls that were made.
void arrange_meetings(const traces::Program& program, Replayed& out);

// A rank comes to a meeting with `call`; `credit` as for agreement().
struct Arrival {
  uint32_t rank = 0;  // position in Program::ranks
  OpId op = 0;
  Nanos when = 0;
};
void note_arrival(Meeting& meeting, const Arrival& arrival, const traces::Call& call, Bytes credit);

// By member of a communicator: is it not part of the program?
[[nodiscard]] std::vector<bool> absent_members(const traces::Program& program,
                                               uint32_t communicator);

// Position of a rank among a communicator's members; -1: not a member. Logarithmic when members
// ascend.
[[nodiscard]] int member_index(const traces::Communicator& communicator, traces::RankId rank);

}  // namespace rehearse::sim
