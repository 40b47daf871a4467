// SPDX-License-Identifier: Apache-2.0
// Published figures before and after a fix against the predicted ratio. Which pairs are used, and why the others are not,
// is a list (validation/figures/fault_pairs.yaml); a file of pairs may have one of its own beside it, fault_pairs.yaml. Pairs in no
// list are read from their own words (pairs/reading.hpp).
#pragma once

#include <filesystem>
#include <vector>

#include "base/reporter.hpp"
#include "validation/check.hpp"

namespace rehearse::validation {

// Any file of pairs; skipped when it cannot be read or none of its pairs says enough.
[[nodiscard]] Check pair_check(const std::filesystem::path& file);

[[nodiscard]] std::vector<Check> fault_pair_checks(const std::filesystem::path& data,
                                                   Reporter& reporter);

}  // namespace rehearse::validation
