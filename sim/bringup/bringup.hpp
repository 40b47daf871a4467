// SPDX-License-Identifier: Apache-2.0
// Simulated bring-up: what happens between the launch and the first step. Every rank is a state machine with
// its own environment, in simulated time:
//
//   launch -> device -> lookup, bind, connect, join -> interface, bootstrap -> topology, transport, buffers
//
// Reachability is computed (sim/bringup/network.hpp), timers are those of the libraries (sim/timers), texts are
// data (sim/bringup/texts.yaml). What a healthy start costs (imports, handshakes) is not modelled: only delays
// and timers take time. Deterministic; a pure function of the expanded scenario.
#pragma once

#include "base/error.hpp"
#include "sim/proto/outcome.pb.h"
#include "sim/scenario/scenario.hpp"

namespace rehearse::sim::bringup {

struct CameUp {
  bool failed = false;
  // failed: the whole outcome but the symptom. Else: bring_up and findings of it only.
  pb::Outcome outcome;
  // Every process takes itself for the whole job: nobody communicates.
  bool alone = false;
  // GPUs that ranks really took, where they differ from the scenario's: by position in launch.ranks.
  std::vector<std::pair<int, uint32_t>> moved;
};

[[nodiscard]] Result<CameUp> bring_up(const Scenario& scenario);

}  // namespace rehearse::sim::bringup
