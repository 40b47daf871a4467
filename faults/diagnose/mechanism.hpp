// SPDX-License-Identifier: Apache-2.0
// What kinds of patches can and must change, so that faults that cannot explain the evidence cost no
// simulation. It knows mechanisms, not faults. Pure functions.
#pragma once

#include <vector>

#include "faults/diagnose/changes.hpp"
#include "sim/proto/outcome.pb.h"
#include "sim/proto/patch.pb.h"

namespace rehearse::faults {

// False when a patch would show in an aspect in which nothing has changed (a slow GPU without longer
// kernels), or when the evidence has changes that none of the patches can make (other bytes in
// collectives without an edit of the program). Only runs that complete tell that much.
[[nodiscard]] bool plausible(const std::vector<pb::Patch>& patches, pb::Verdict verdict,
                             const Changes& changes);

}  // namespace rehearse::faults
