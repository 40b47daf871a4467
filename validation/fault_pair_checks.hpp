// SPDX-License-Identifier: Apache-2.0
// Published figures before and after a fix against the predicted ratio. Which pairs are used, and why
// the others are not, was written down before any was modelled (validation/figures/fault_pairs.yaml).
#pragma once

#include <filesystem>
#include <vector>

#include "base/reporter.hpp"
#include "validation/check.hpp"

namespace rehearse::validation {

[[nodiscard]] std::vector<Check> fault_pair_checks(const std::filesystem::path& data,
                                                   Reporter& reporter);

}  // namespace rehearse::validation
