// SPDX-License-Identifier: Apache-2.0
// Step times of stated layouts without a trace (step_time/layout.hpp) against published ones: rates of GPUs are
// fitted on llm-foundry's tables; its rows are predicted by fits without any row of their model, torchtitan's by the fit of all;
// Megatron's small jobs are judged by the order of layouts within a family.
#pragma once

#include <filesystem>
#include <vector>

#include "base/reporter.hpp"
#include "validation/check.hpp"

namespace rehearse::validation {

[[nodiscard]] std::vector<Check> step_checks(const std::filesystem::path& data, Reporter& reporter);

}  // namespace rehearse::validation
