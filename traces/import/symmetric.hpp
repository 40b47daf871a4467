// SPDX-License-Identifier: Apache-2.0
// Ranks that were not recorded, cloned from ones that were (--assume-symmetric). Ranks have the same
// role when they stand at the same place of their point-to-point communicators (the same pipeline
// stage); without any, all have. Communicators of clones are the groups that the recorded ones imply: a
// group such as {0, 4, 8, 12} or {0, 1, 4, 5} stands for a regular split of all ranks.
//
// A clone does what its source did. The part of a recorded call that is longer than the shortest call
// like it was a wait for ranks that nobody recorded: where members are missing it stays as exogenous
// wait, before the clone's call. The durations of clones are drawn when the program is built
// (traces/program/clones.hpp).
#pragma once

#include <cstdint>

#include "base/finding.hpp"
#include "traces/model/trace.hpp"

namespace rehearse::traces {

// Adds the missing ranks of header.world_size() for whose role there is a recorded rank, and says in
// findings what was assumed, what could not be cloned, and what is not known.
void assume_symmetric(Trace& trace, uint64_t seed, Findings& findings);

}  // namespace rehearse::traces
