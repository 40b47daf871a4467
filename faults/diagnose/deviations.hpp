// SPDX-License-Identifier: Apache-2.0
// How the calls that ranks recorded (flight recorder) differ from those of most members of the same group: left out, made
// once more, with another size. Unlike recorders.hpp, which says who is to blame, this is a measurement that a
// simulated run is compared by. Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/proto/outcome.pb.h"

namespace rehearse::faults {

// One rank in one group. Calls that nobody else has recorded (yet) do not differ.
struct Deviation {
  uint32_t rank = 0;
  std::string group;
  int ahead = 0;        // calls more than most members have put into their queues; below 0: fewer
  uint32_t others = 0;  // calls that are not those of most members at the same sequence number
  double size = 0;      // ln of the size over that of most, at the first such call of the same kind
  int64_t sequence = -1;  // of the first such call
  int64_t nth = -1;       // of all calls of that rank, where it comes first
  // Of the call that most members are stuck in: 1 where it alone runs it, -1 where most run it and it does not (it stands in
  // its queue behind another, or the rank stopped), 0 where it does as most.
  int running = 0;
};

// Of every recorded rank and group of two or more, in the order of the dumps; nothing: no dumps.
[[nodiscard]] std::vector<Deviation> deviations(const pb::Outcome& run);

// The rank whose calls differ from its peers' where theirs agree, and where that begins: the one with most other calls.
[[nodiscard]] std::optional<Deviation> most_deviating(const pb::Outcome& run);

}  // namespace rehearse::faults
