// SPDX-License-Identifier: Apache-2.0
// The one door to the simulation: a scenario in, an outcome out. Deterministic: same scenario, same bytes.
// SimGrid allows one engine per process, so each call runs in a forked child of its own and the caller's
// process is left untouched; call it as often as needed.
#pragma once

#include <functional>

#include "base/error.hpp"
#include "base/reporter.hpp"
#include "sim/outcome/outcome.hpp"
#include "sim/proto/outcome.pb.h"
#include "sim/scenario/scenario.hpp"

namespace rehearse::sim {

// verdict, step times, culprits, waits, breakdown, links, communicators and findings are filled;
// `symptom` is left to the classifier (faults/symptoms), which sees only the outcome.
[[nodiscard]] Result<pb::Outcome> simulate(const Scenario& scenario, Reporter& reporter);
// What more an outcome has; any of these together. kSavings: what a step would save without each row of the critical
// path. kTimeline: every operation's times (Outcome.timeline), some bytes for each. kRecords: the flight records of a
// run that hangs or times out. kPictures: what a report draws (Outcome.pictures).
enum class Detail : uint8_t {
  kSummary = 0,
  kSavings = 1,
  kTimeline = 1 << 1 | kSavings,
  kRecords = 1 << 2 | kSavings,
  kPictures = 1 << 3 | kSavings,
};
[[nodiscard]] constexpr Detail operator|(Detail a, Detail b) {
  return static_cast<Detail>(static_cast<uint8_t>(a) | static_cast<uint8_t>(b));
}
[[nodiscard]] constexpr bool has(Detail all, Detail one) { return (all | one) == all; }
[[nodiscard]] Result<pb::Outcome> simulate(const Scenario& scenario, Detail detail,
                                           Reporter& reporter);

// The same in this process, once per process: for those that fork themselves (sim/worker.hpp).
[[nodiscard]] Result<pb::Outcome> simulate_here(const Scenario& scenario, Detail detail,
                                                Reporter& reporter);

// Replays a scenario in this process and shows `look` what came out; for those that fork themselves
// (sim/worker.hpp), once per process.
[[nodiscard]] Result<void> replay_here(const Scenario& scenario, Reporter& reporter,
                                       const std::function<void(const Evidence&)>& look);

}  // namespace rehearse::sim
