// SPDX-License-Identifier: Apache-2.0
// A profiled step is slower than a production step: every recorded host event costs its thread time.
// Given the step time without the profiler, the cost per event is fitted so that the program takes that
// long (--unprofiled-step); it is kept with each rank, in its environment, and taken out of host lanes
// when the program is built.
#pragma once

#include "base/finding.hpp"
#include "base/units.hpp"
#include "traces/model/trace.hpp"
#include "traces/program/draft.hpp"

namespace rehearse::traces {

// In RankTrace::env: nanoseconds per recorded host event.
constexpr const char* kOverheadVariable = "REHEARSE_PROFILER_OVERHEAD_NS";
[[nodiscard]] Nanos overhead_of(const RankTrace& rank);

// Takes the rank's overhead for each recorded event of a host thread from the gap before its next call,
// then from the call itself. Gaps and durations of the draft are final otherwise.
void remove_overhead(Draft& draft);

// Sets the overhead of every rank. Findings tell the fit, or why there is none: no steps, a step that is not shorter than the recorded one, or one that host work cannot explain.
void fit_overhead(Trace& trace, Nanos unprofiled_step, Findings& findings);

}  // namespace rehearse::traces
