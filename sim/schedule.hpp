// SPDX-License-Identifier: Apache-2.0
// What changes while a run goes on: capacities of links, speeds of GPUs, ranks that stop. Made from the
// patches that hold for an interval (sim/scenario/timed.hpp); plain data in simulated time.
#pragma once

#include <cstdint>
#include <string>
#include <map>
#include <vector>

#include "base/units.hpp"
#include "platforms/model/links.hpp"

namespace rehearse::sim {

// Bytes per second of a link from `at` on; 0: down.
struct CapacityChange {
  Nanos at = 0;
  platforms::LinkId link = 0;
  BytesPerSec capacity = 0;
};

// How fast the GPU work of a rank goes from `at` on, relative to the program: 0.5 is half speed.
struct SpeedChange {
  Nanos at = 0;
  uint32_t rank = 0;
  double speed = 1;
};

// A rank that is no more from `at` on.
struct StoppedRank {
  uint32_t rank = 0;
  Nanos at = 0;
  bool silent = false;
  std::string text = {};  // what it prints before
};

// A link that carries nothing from `from` until `until` (kForever: it does not come back).
struct Outage {
  static constexpr Nanos kForever = INT64_MAX;
  platforms::LinkId link = 0;
  Nanos from = 0;
  Nanos until = kForever;
};

// Tries of a transport whose data a dead link swallowed: the first after `first`, each further one after twice as
// long as the one before but not longer than `longest`, `times` in all.
struct Retry {
  Nanos first = 0;
  Nanos longest = 0;
  int times = 0;
};

// Traffic of others over a route, for an interval.
struct Background {
  std::vector<platforms::LinkId> route;
  BytesPerSec rate = 0;
  Nanos from = 0;
  Nanos until = Outage::kForever;
};

// Each list in order of time, then of link or rank.
struct Schedule {
  std::vector<CapacityChange> capacities;
  std::vector<SpeedChange> speeds;
  std::vector<StoppedRank> stopped;
  std::vector<Outage> outages;  // links that are down from the start too
  std::vector<Background> background;
  // By link; one that is not in it carries on at once when it is back.
  std::map<platforms::LinkId, Retry> retries;
  [[nodiscard]] bool empty() const {
    return capacities.empty() && speeds.empty() && stopped.empty() && background.empty();
  }
};

}  // namespace rehearse::sim
