// SPDX-License-Identifier: Apache-2.0
// What a fix changes beside the step time, against the job as it should be: memory of GPUs, work of other ranks, bytes
// over links that other jobs share, the batch. What the fault changed and the fix leaves is not the fix's. One
// sentence each, most important first. Pure functions.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "faults/fix/judge.hpp"

namespace rehearse::faults {

[[nodiscard]] std::vector<std::string> side_effects(const FixRuns& runs,
                                                    std::span<const pb::Patch> patches);

}  // namespace rehearse::faults
