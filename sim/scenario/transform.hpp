// SPDX-License-Identifier: Apache-2.0
// Named transforms of the recorded program: the part of a patch that is code. Each takes the
// program and its parameters and edits the operations of the ranks it names.
#pragma once

#include "base/error.hpp"
#include "sim/proto/patch.pb.h"
#include "traces/program/program.hpp"

namespace rehearse::sim {

// Applies the transform of `patch`. kBadInput when it names a rank or call that the program does
// not have.
[[nodiscard]] Result<void> transform(traces::Program& program, const pb::Patch& patch);

}  // namespace rehearse::sim
