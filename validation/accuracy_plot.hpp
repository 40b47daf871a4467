// SPDX-License-Identifier: Apache-2.0
// Predicted against measured as pictures: one self-contained HTML page with a plot per check, both axes
// logarithmic, a point per row. Points on the diagonal are right; hover shows the row.
#pragma once

#include <string>
#include <vector>

#include "validation/check.hpp"

namespace rehearse::validation {

// Checks without rows are listed without a plot. Text of rows is escaped.
[[nodiscard]] std::string accuracy_plots(const std::vector<Check>& checks);

}  // namespace rehearse::validation
