// SPDX-License-Identifier: Apache-2.0
// Predicted ratios of two measured configurations, by kind of change: what a band of a new what-if is made of
// (change.hpp). Rows of other checks that are such ratios (fault and fix pairs, stragglers) say so by CheckRow::change.
#pragma once

#include <string>
#include <vector>

#include "validation/calibrate/observations.hpp"
#include "validation/check.hpp"

namespace rehearse::validation {

// From nccl-tests tables and data sheets alone, of calls of 1 MiB and more: a forced algorithm or protocol against NCCL's
// own choice where that is another (algorithm), more GPUs or nodes (scale), GPUs of one generation and number that other
// links join (bandwidth). Each kind's own share is among the assumptions.
[[nodiscard]] Check collective_changes(const std::vector<ObservedHardware>& hardware);

// From predicted and measured step times (rows that share a group are of one model): one layout against the next.
[[nodiscard]] Check layout_changes(const std::vector<CheckRow>& steps);

// validation/figures/change_errors.yaml of the rows of all checks that are changes. Kinds with fewer than five rows are left
// out.
[[nodiscard]] std::string change_errors_document(const std::vector<Check>& checks);

}  // namespace rehearse::validation
