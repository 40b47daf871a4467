// SPDX-License-Identifier: Apache-2.0
// The state of a run at a moment, from a replay that stands still there (sim/replay/watch.hpp): nothing here is
// interpolated from how the run ended. One file per question; all are pure functions of their inputs.
#pragma once

#include "sim/outcome/outcome.hpp"
#include "sim/proto/snapshot.pb.h"
#include "sim/replay/watch.hpp"

namespace rehearse::sim {

// A moment of a run: `evidence` as the replay has it, with what would happen after `standing.now`; `past` as it was up to
// then, later ends and arrivals never having been.
struct Instant {
  const Scenario& scenario;
  const Evidence& evidence;
  const Evidence& past;
  const Standing& standing;
};

// Where each lane of each rank is, its step, speed and memory.
void fill_ranks(const Instant& instant, pb::Snapshot& out);
// Calls that are open; flows in flight, the links they cross.
void fill_calls(const Instant& instant, pb::Snapshot& out);
void fill_flows(const Instant& instant, pb::Snapshot& out);
// Timers that would run out if nothing moved any more.
void fill_timers(const Instant& instant, pb::Snapshot& out);

// All of that; schema, version, patches and time.
[[nodiscard]] pb::Snapshot take_snapshot(const Scenario& scenario, const Evidence& evidence,
                                         const Standing& standing);

// "all_reduce 7 on world/0-15".
[[nodiscard]] std::string describe_call(const Evidence& evidence, const traces::Call& call);

}  // namespace rehearse::sim
