// SPDX-License-Identifier: Apache-2.0
// Names of NVTX ranges: those that mark a training step ("ProfilerStep#12", "train step 12", "iteration_12"),
// and those that carry a number of their own. Pure; recorder and importers agree on them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace rehearse::capture_file {

struct StepName {
  int family = 0;  // smaller: more surely a step of training
  int64_t number = 0;
};
[[nodiscard]] std::optional<StepName> step_of(std::string_view range);

// torch.autograd.profiler.emit_nvtx appends what differs in every call ("aten::mul, op_id = 7").
[[nodiscard]] std::string_view without_number(std::string_view name);

}  // namespace rehearse::capture_file
