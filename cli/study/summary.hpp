// SPDX-License-Identifier: Apache-2.0
// What is shown of the rows of a study: the best points, what matters, the front of time against GPUs, what
// failed. Pure functions.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "cli/study/plan.hpp"
#include "cli/study/row.hpp"
#include "cli/terminal.hpp"

namespace rehearse::cli {

struct Summary {
  const Plan& plan;
  const std::map<size_t, Row>& rows;
  const Goal& goal;
  size_t top = 10;
  std::string folder;
};

[[nodiscard]] std::string summary_text(const Summary& summary, const Terminal& terminal);
[[nodiscard]] nlohmann::ordered_json summary_json(const Summary& summary);

// A figure with its unit: "54.9 ms", "31.0 GiB", "64".
[[nodiscard]] std::string shown_figure(const std::string& metric, double value);
// "nics=4, algorithm=Ring".
[[nodiscard]] std::string described(const Plan& plan, size_t point);

}  // namespace rehearse::cli
