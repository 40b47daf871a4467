// SPDX-License-Identifier: Apache-2.0
// The order of forward and backward passes on one pipeline stage: 1F1B (Narayanan et al.,
// "Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM", SC 2021,
// section 2.2) and, with more than one model chunk per stage, its interleaved form as in
// Megatron-LM's schedules.py. Idle share of ideal time: (stages - 1) / (micro-batches * chunks).
// Pure functions.
#pragma once

#include <cstdint>
#include <vector>

namespace rehearse::synth {

enum class Pass : uint8_t { kForward, kBackward };

struct Work {
  Pass pass = Pass::kForward;
  uint32_t micro_batch = 0;
  uint32_t chunk = 0;
  bool operator==(const Work&) const = default;
};

struct Pipeline {
  uint32_t stages = 1;
  uint32_t micro_batches = 1;
  uint32_t chunks = 1;  // > 1 needs micro_batches divisible by stages
};

[[nodiscard]] std::vector<Work> schedule(const Pipeline& pipeline, uint32_t stage);

}  // namespace rehearse::synth
