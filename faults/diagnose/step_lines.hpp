// SPDX-License-Identifier: Apache-2.0
// What a training script prints of its steps (step_lines.yaml): how far a run came and whether it slows down, from logs
// alone. The same table gives the lines that simulated jobs print. Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "faults/proto/step_lines.pb.h"
#include "sim/scenario/scenario.hpp"

namespace rehearse::faults {

// What the output of one process tells of steps.
struct ToldSteps {
  uint32_t lines = 0;  // that tell of a step
  bool began = false;  // a line that scripts print right before their first step is there
  // How many were done, at least: from the lowest number to the highest; where lines have no numbers and one is printed in
  // each step, the lines. Nothing: lines do not tell, all that were to be done were, or there are no lines and it is not
  // known that training began, or it says much in words of its own.
  std::optional<uint32_t> steps;
  std::vector<double> seconds;  // of a step, as far as lines tell, in their order
};

class StepLines {
 public:
  // The shipped table, read once.
  [[nodiscard]] static const Result<StepLines>& shipped();
  // Refuses a row without a sign, and a pattern that is no regular expression or has fewer groups than the row names.
  [[nodiscard]] static Result<StepLines> of(pb::StepLineTable table);

  struct Read {
    const pb::StepLine* row = nullptr;  // null: no row knows the line
    std::optional<uint64_t> step, total;
    std::optional<double> seconds;
  };
  [[nodiscard]] Read read(std::string_view line) const;
  // Whether a line is one that scripts print right before their first step.
  [[nodiscard]] bool begins(std::string_view line) const;

  [[nodiscard]] const pb::StepLineTable& table() const { return table_; }
  // The row that jobs of a framework print; null: none.
  [[nodiscard]] const pb::StepLine* printed_by(pb::Framework framework) const;

 private:
  pb::StepLineTable table_;
  std::vector<std::regex> patterns_;
};

[[nodiscard]] ToldSteps told_steps(std::string_view log, const StepLines& known);

// How many times longer the last quarter of the steps took than the first, medians; nothing of fewer than
// kStepsForGrowth times.
[[nodiscard]] std::optional<double> growth(const ToldSteps& told);
constexpr size_t kStepsForGrowth = 8;

// What the script of a simulated job prints on a process that takes itself for rank 0, once the processes have met and of
// `steps` steps.
struct ScriptOutput {
  std::string start, steps;
};
[[nodiscard]] ScriptOutput script_output(const sim::Scenario& scenario, uint32_t steps,
                                         const StepLines& known);

}  // namespace rehearse::faults
