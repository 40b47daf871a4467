// SPDX-License-Identifier: Apache-2.0
// The range of a step time over what is not known exactly: the scenario simulated again and again
// with parameters drawn jointly. Seeded by the scenario; same input, same range.
#pragma once

#include "cli/scenario_options.hpp"

namespace rehearse::cli {

// 5th to 95th percentile of the mean step time over `draws` runs. kBadInput when none completes.
[[nodiscard]] Result<pb::Band> step_time_band(const Edited& edited, uint32_t draws,
                                              Reporter& reporter);

}  // namespace rehearse::cli
