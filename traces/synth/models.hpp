// SPDX-License-Identifier: Apache-2.0
// One function per model: the script of a role. `options` are complete (options.hpp).
#pragma once

#include <vector>

#include "traces/synth/framework.hpp"

namespace rehearse::synth {

// What every model is built from.
struct Workshop {
  const pb::Synth& options;
  const Layout& layout;
  const Costs& costs;
  traces::Strings& strings;
};

// gpt and moe: one pipeline stage.
[[nodiscard]] Script gpt_script(const Workshop& workshop, uint32_t stage);
[[nodiscard]] Script resnet50_script(const Workshop& workshop);
[[nodiscard]] Script dlrm_script(const Workshop& workshop);

// Elements of every parameter tensor of torchvision's resnet50 in the order of registration;
// 25,557,032 in all.
[[nodiscard]] std::vector<Bytes> resnet50_parameters();

// Optimizer over `parameters` elements: Adam moves 12 bytes of state each way, the gradient and the
// weight. One kernel per 20 M elements, about what a multi-tensor launch can address.
void adam_step(Framework& framework, double parameters);

}  // namespace rehearse::synth
