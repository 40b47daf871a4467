// SPDX-License-Identifier: Apache-2.0
// The one door to the simulation: a scenario in, an outcome out. Deterministic: same scenario, same bytes.
// SimGrid allows one engine per process, so each call runs in a forked child of its own and the caller's
// process is left untouched; call it as often as needed.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "base/error.hpp"
#include "base/reporter.hpp"
#include "sim/bringup/bringup.hpp"
#include "sim/outcome/outcome.hpp"
#include "sim/proto/outcome.pb.h"
#include "sim/scenario/scenario.hpp"

namespace rehearse::sim {

// verdict, step times, culprits, waits, breakdown, links, communicators and findings are filled;
// `symptom` is left to the classifier (faults/symptoms), which sees only the outcome.
[[nodiscard]] Result<pb::Outcome> simulate(const Scenario& scenario, Reporter& reporter);
// What an outcome has; any of these together. kFigures: what a study keeps (make_figures). kLinks: how busy links were. kDumps:
// flight records of a run that hangs or times out. kObserved: what somebody could have recorded of the run. kSummary: why a
// completed run takes so long. kSavings: what a step would save without each row of the critical path. kTimeline: every operation's times (Outcome.timeline), some bytes for each. kRecords: a summary with flight
// records. kPictures: what a report draws (Outcome.pictures).
enum class Detail : uint8_t {
  kFigures = 0,
  kLinks = 1 << 5,
  kDumps = 1 << 2,
  kObserved = kLinks | kDumps,
  kSummary = 1 << 4 | kLinks,
  kSavings = 1 | kSummary,
  kTimeline = 1 << 1 | kSavings,
  kRecords = kDumps | kSummary,
  kPictures = 1 << 3 | kSavings,
};
[[nodiscard]] constexpr Detail operator|(Detail a, Detail b) {
  return static_cast<Detail>(static_cast<uint8_t>(a) | static_cast<uint8_t>(b));
}
[[nodiscard]] constexpr bool has(Detail all, Detail one) { return (all | one) == all; }
[[nodiscard]] Result<pb::Outcome> simulate(const Scenario& scenario, Detail detail,
                                           Reporter& reporter);

// How a job comes up: what bring-up says, and the scenario with every rank on the GPU that it took and with those that it
// found, and gradients packed as Horovod was told, where that is not as written.
struct Start {
  bringup::CameUp up;
  std::optional<Scenario> other = std::nullopt;
  [[nodiscard]] const Scenario& of(const Scenario& written) const {
    return other ? *other : written;
  }
};
[[nodiscard]] Result<Start> come_up(const Scenario& written);

// The same in this process, once per process: for those that fork themselves (sim/worker.hpp).
[[nodiscard]] Result<pb::Outcome> simulate_here(const Scenario& scenario, Detail detail,
                                                Reporter& reporter);

// Replays a scenario in this process and shows `look` what came out; for those that fork themselves
// (sim/worker.hpp), once per process. The scenario is as it came up.
[[nodiscard]] Result<void> replay_here(const Scenario& scenario, Reporter& reporter,
                                       const std::function<void(const Evidence&)>& look);

// The same, standing still at `times` (ascending) on the way: `look` sees the run as it is then (its `replayed` is the
// Standing's) and says whether it goes on. Once per process too.
using WatchFn = std::function<bool(const Evidence&, const Standing&)>;
[[nodiscard]] Result<void> watch_here(const Scenario& scenario, const std::vector<Nanos>& times,
                                      Reporter& reporter, const WatchFn& look);

}  // namespace rehearse::sim
