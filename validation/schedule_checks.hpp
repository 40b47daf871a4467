// SPDX-License-Identifier: Apache-2.0
// Rules of frameworks and networks against their sources (validation/figures/schedules.yaml): sizes of DDP's
// gradient buckets against a recorded job, idle time of pipelines against the formula, timers against
// the code they come from.
#pragma once

#include <filesystem>
#include <vector>

#include "base/reporter.hpp"
#include "validation/check.hpp"

namespace rehearse::validation {

[[nodiscard]] std::vector<Check> bucket_checks(const std::filesystem::path& data,
                                               Reporter& reporter);
// These need no data folder.
[[nodiscard]] std::vector<Check> schedule_checks(const std::filesystem::path& data,
                                                 Reporter& reporter);

}  // namespace rehearse::validation
