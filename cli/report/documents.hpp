// SPDX-License-Identifier: Apache-2.0
// Documents of our own, read back: outcomes, diagnoses, fixes, studies, checks of accuracy.
#pragma once

#include <string>
#include <vector>

#include "base/error.hpp"
#include "cli/report/report.hpp"
#include "sim/proto/outcome.pb.h"

namespace rehearse::cli {

// `rehearse run --json`.
[[nodiscard]] Result<pb::Outcome> read_outcome(const std::string& path);

// Outcomes become runs, summaries of sweeps studies; a diagnosis or fixes belong to the outcome before them. kBadInput for a document of another
// kind, kUsage when an outcome is
// missing.
[[nodiscard]] Result<Report> read_report(const std::vector<std::string>& paths);

}  // namespace rehearse::cli
