// SPDX-License-Identifier: Apache-2.0
// Where a rank stands during a replay.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/replay/replay.hpp"

namespace rehearse::sim {

// A call that a rank is in and whose end is known before the clock is there.
struct KnownEnd {
  Nanos at = 0;
  uint32_t meeting = 0;
  MeetingCall who = {};
};

// Where a rank stands, in one place: a large job is bound by what it fetches from memory.
struct RankState {
  Nanos wake = -1;          // the timer that is set
  Nanos present = 0;        // its own time, where that is ahead of the clock
  uint64_t calls_left = 0;  // that it has not left
  uint32_t open = 0;        // calls and transfers that it is in,
  uint32_t resident = 0;    // those of them on its streams
  bool rated = false;       // collectives or a director change the rate of its kernels
  bool ended = false;       // nothing is left, and the director has been told
  bool queued = false;      // waits to be settled
  std::vector<KnownEnd> known = {};
  std::vector<uint32_t> in = {};  // communicators of the calls that it is in
};

}  // namespace rehearse::sim
