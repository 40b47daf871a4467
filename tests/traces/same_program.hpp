// SPDX-License-Identifier: Apache-2.0
// Compares two programs whose lanes and strings may be numbered differently.
#pragma once

#include <string>

#include "traces/program/program.hpp"

namespace rehearse::traces::samples {

// "" when ranks, steps, lanes (by kind and id), operations in order, gaps, durations, edges and calls agree;
// else the first difference in words.
[[nodiscard]] std::string difference(const Program& a, const Strings& names_a, const Program& b,
                                     const Strings& names_b);

}  // namespace rehearse::traces::samples
