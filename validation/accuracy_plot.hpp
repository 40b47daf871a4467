// SPDX-License-Identifier: Apache-2.0
// Predicted against measured as pictures: one self-contained HTML page with a plot per check, both axes
// logarithmic, a point per row. Points on the diagonal are right; hover shows the row.
#pragma once

#include <string>
#include <vector>

#include "validation/check.hpp"

namespace rehearse::validation {

// One check as an SVG of its own, to be put into any page that has accuracy_style() among its styles. A point is a row
// (predicted up, measured to the right, both by decades) with its 90 % band where there is one.
[[nodiscard]] std::string accuracy_svg(const Check& check);
[[nodiscard]] std::string accuracy_style();

// The page. Checks without rows are listed without a plot. Text of rows is escaped.
[[nodiscard]] std::string accuracy_plots(const std::vector<Check>& checks);

}  // namespace rehearse::validation
