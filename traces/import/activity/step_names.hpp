// SPDX-License-Identifier: Apache-2.0
// Names of ranges that mark a training step: "ProfilerStep#12", "train step 12", "iteration_12". Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace rehearse::traces::activity {

struct StepName {
  int family = 0;  // smaller: more surely a step of training
  int64_t number = 0;
};
[[nodiscard]] std::optional<StepName> step_of(std::string_view range);

}  // namespace rehearse::traces::activity
