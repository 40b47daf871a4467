// SPDX-License-Identifier: Apache-2.0
// Looking at a replay in the middle: it stands still at each time that is named, everything up to and including that
// time has happened, and it goes on or ends there. Looking changes nothing that follows.
#pragma once

#include <functional>
#include <vector>

#include "sim/fabric/fabric.hpp"

namespace rehearse::sim {

struct Replayed;

// What a replay that stands still shows. In `replayed`, ends and arrivals after `now` are what would happen at the
// present rates: lanes of fixed operations are evaluated ahead.
struct Standing {
  Nanos now = 0;
  const Replayed& replayed;
  const Fabric& fabric;
  // By position in Program::ranks: how fast its GPU works, 0 to 1 of what the program says; stopped ranks are no more.
  std::vector<double> speed;
  std::vector<bool> stopped;
};

struct Watch {
  std::vector<Nanos> times;                   // ascending
  std::function<bool(const Standing&)> look;  // false: the run ends here
};

}  // namespace rehearse::sim
