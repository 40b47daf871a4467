// SPDX-License-Identifier: Apache-2.0
// HOROVOD_AUTOTUNE: while Horovod tries settings, step times are not those of the tuned job
// (horovod/common/parameter_manager.cc). A sample is HOROVOD_AUTOTUNE_STEPS_PER_SAMPLE steps with one cycle time:
//
//   first HOROVOD_AUTOTUNE_WARMUP_SAMPLES   5 ms, and not counted
//   the next four                           5, 50, 25 and 10 ms
//   up to HOROVOD_AUTOTUNE_BAYES_OPT_MAX_SAMPLES   from 1 to 100 ms: drawn here, where Horovod asks a Gaussian process
//   then                                    the best, taken to be Horovod's default
//
// A step's last collective waits half a cycle on average, which the step feels. Rank 0 tunes and tells the others. A
// HOROVOD_CYCLE_TIME that is set is not tuned: nothing changes then (a finding). Blind spots: other fusion buffers and
// other levels during samples.
#pragma once

#include "base/error.hpp"
#include "sim/horovod/controller.hpp"
#include "sim/scenario/scenario.hpp"
#include "traces/program/program.hpp"

namespace rehearse::sim {

// Cycle in step `step` of the run; that of `settings` when tuning is over or off.
[[nodiscard]] Nanos tuned_cycle(const HorovodSettings& settings, uint64_t seed, uint32_t step);

// Lets the last collective of each step wait. Finding of the program: "horovod-autotune".
[[nodiscard]] Result<void> autotune(const Scenario& scenario, traces::Program& program);

}  // namespace rehearse::sim
