// SPDX-License-Identifier: Apache-2.0
// `undo`: transforms that were applied before no longer hold.
#pragma once

#include "sim/scenario/scenario.hpp"

namespace rehearse::sim {

// Takes transforms of that name out of the scenario, timed ones too; with a rank those on it, and the rank alone out of
// those that are on several; with `like` those alone that are alike one of these. kBadInput when there is no such transform, or it cannot be undone. The caller's scenario
// may be left half-way when it fails.
[[nodiscard]] Result<void> undo(Scenario& scenario, const pb::Undo& what);

}  // namespace rehearse::sim
