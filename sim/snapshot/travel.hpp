// SPDX-License-Identifier: Apache-2.0
// Time travel: a run is deterministic, so its state at any moment is found by replaying it up to there. Each call
// here simulates in children of its own (sim/worker.hpp) and leaves the caller's process untouched.
#pragma once

#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/reporter.hpp"
#include "sim/proto/snapshot.pb.h"
#include "sim/scenario/scenario.hpp"

namespace rehearse::sim {

// A moment as people name it: a simulated time, when a step begins, or when something last went on.
struct MomentName {
  enum class Kind { kTime, kStep, kLastProgress } kind = Kind::kTime;
  Nanos time = 0;     // kTime
  uint32_t step = 0;  // kStep, from 0
};
// "1.5s", "step 2", "last-progress". kUsage when it is none of them.
[[nodiscard]] Result<MomentName> parse_moment(std::string_view text);

struct Travel {
  MomentName to;
  // From there so many moments further (negative: back) at which something of the job happens that others can see: a
  // rank comes to a call or leaves it, bytes of a transfer begin to move or are through, a rank stops.
  int64_t moments = 0;
};

// The state of the run then. Behind its end: as it ended. kBadInput when the run does not come there (a step that it
// does not have).
[[nodiscard]] Result<pb::Snapshot> state_at(const Scenario& scenario, const Travel& travel,
                                            Reporter& reporter);

// The states at several times (ascending), all seen in one run that goes on to its end.
[[nodiscard]] Result<std::vector<pb::Snapshot>> states_at(const Scenario& scenario,
                                                          const std::vector<Nanos>& times,
                                                          Reporter& reporter);

// The scenario with a patch that holds from a time on. Assignments to the platform, slow-rank, background-traffic and
// stop-rank are limited to it; any other transform is taken as it is and has to change nothing before (check_past).
// kBadInput when the patch names an earlier time itself.
[[nodiscard]] Result<Scenario> branch_of(const Scenario& scenario, const pb::Patch& patch,
                                         Nanos from);
// kBadInput when the two runs are not the same just before `when`.
[[nodiscard]] Result<void> check_past(const Scenario& scenario, const Scenario& branch, Nanos when,
                                      Reporter& reporter);

}  // namespace rehearse::sim
