// SPDX-License-Identifier: Apache-2.0
// Jobs of the straggler study, one folder each below straggler/ of the data folder: trace-*.csv.gz with
// meta-*.yaml, and result-*.json with the authors' answers. Communication and host costs are taken from every other
// step and the steps between are predicted; and what a step would take without stragglers is compared with the authors' own
// replay.
#pragma once

#include <filesystem>
#include <vector>

#include "base/reporter.hpp"
#include "validation/check.hpp"

namespace rehearse::validation {

[[nodiscard]] std::vector<Check> straggler_checks(const std::filesystem::path& data,
                                                  Reporter& reporter);

}  // namespace rehearse::validation
