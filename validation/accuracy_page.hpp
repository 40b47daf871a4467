// SPDX-License-Identifier: Apache-2.0
// The published table of accuracy (docs/accuracy.md), made from the checks and nothing else.
#pragma once

#include <string>
#include <vector>

#include "validation/check.hpp"

namespace rehearse::validation {

// A check's figures in words, with units: "4.2 %", "0.91".
struct CheckFigures {
  std::string figure;
  std::string p90;
  std::string target;
};
[[nodiscard]] CheckFigures figures_of(const Check& check);

// Markdown: the table, then per check what was assumed and why a target is missed.
[[nodiscard]] std::string accuracy_page(const std::vector<Check>& checks);

}  // namespace rehearse::validation
