// SPDX-License-Identifier: Apache-2.0
// Joins what the files gave into one trace: ranks in order, communicators shared, sizes from
// execution traces, sequence numbers that agree across ranks, steps and clocks. Contradictions
// become findings.
#pragma once

#include <vector>

#include "base/error.hpp"
#include "traces/import/import.hpp"

namespace rehearse::traces {

// Fills out.trace (whose strings the parts already use) and adds to out.findings.
[[nodiscard]] Result<void> merge(std::vector<FilePart> parts, const ImportOptions& options,
                                 Imported& out);

}  // namespace rehearse::traces
