// SPDX-License-Identifier: Apache-2.0
// The words and the JSON of an explained collective.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/terminal.hpp"
#include "sim/nccl/explain.hpp"
#include "validation/accuracy.hpp"

namespace rehearse::cli {

// What stands around an explanation.
struct ExplanationFrame {
  std::string platform;                          // id
  std::optional<validation::Accuracy> accuracy;  // of such predictions on such hardware
  bool every_channel = false;                    // -v: all rings and trees
};

[[nodiscard]] std::string explanation_text(const sim::Explanation& explained,
                                           const ExplanationFrame& frame, const Terminal& terminal);
[[nodiscard]] nlohmann::ordered_json explanation_json(const sim::Explanation& explained,
                                                      const ExplanationFrame& frame);

// One row per size, as nccl-tests prints them.
[[nodiscard]] std::string sweep_text(const std::vector<sim::Explanation>& rows,
                                     const ExplanationFrame& frame, const Terminal& terminal);
[[nodiscard]] nlohmann::ordered_json sweep_json(const std::vector<sim::Explanation>& rows,
                                                const ExplanationFrame& frame);

}  // namespace rehearse::cli
