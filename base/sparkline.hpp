// SPDX-License-Identifier: Apache-2.0
// A row of figures in a line of text. Pure function.
#pragma once

#include <span>
#include <string>

namespace rehearse {

// One block character per value, scaled from 0 to the largest: "▁▂▄█". Of more than 40 values the largest of each of 40
// stretches. Empty for no values.
[[nodiscard]] std::string sparkline(std::span<const double> values);

}  // namespace rehearse
