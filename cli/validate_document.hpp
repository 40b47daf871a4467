// SPDX-License-Identifier: Apache-2.0
// The document of every `rehearse validate --json`, rehearse.validate/1. A check has the same fields whatever it compares;
// what else a kind of reference has to tell (differences, steps, hardware) stands beside the checks.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

#include "validation/check.hpp"

namespace rehearse::cli {

enum class CheckRows : uint8_t { kLeftOut, kListed };

// Fields that a check does not have are null: errors where no rows were compared, target and verdict where nothing is judged.
[[nodiscard]] nlohmann::ordered_json check_json(const validation::Check& check, CheckRows rows);

// The same of errors that are known without their rows: absolute values, ascending.
[[nodiscard]] nlohmann::ordered_json check_json(const validation::Check& check,
                                                const std::vector<double>& errors);

// `about` (what was looked at) comes before the checks, `details` after them; both are objects.
[[nodiscard]] nlohmann::ordered_json validate_document(const nlohmann::ordered_json& about,
                                                       nlohmann::ordered_json checks,
                                                       const nlohmann::ordered_json& details);

}  // namespace rehearse::cli
