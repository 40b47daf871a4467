// SPDX-License-Identifier: Apache-2.0
// Durations of cloned ranks (traces/import/symmetric.hpp). The recorded durations of one operation are
// those of the same place in every step of every recorded rank of the role that did the same; a clone
// draws each of its own from them, independently and by (seed, rank) alone. Calls are not drawn: the
// replay computes them. With one sample nothing is drawn, and a finding says that the variance is
// unknown.
#pragma once

#include "traces/model/trace.hpp"
#include "traces/program/program.hpp"

namespace rehearse::traces {

// In RankTrace::env of a clone: the seed of its draws.
constexpr const char* kSeedVariable = "REHEARSE_CLONE_SEED";

// Changes the durations of the ranks in header.cloned_from() and repeats in program.findings what the
// import assumed about them.
void draw_clones(const Trace& trace, Program& program);

}  // namespace rehearse::traces
