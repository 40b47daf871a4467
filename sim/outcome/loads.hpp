// SPDX-License-Identifier: Apache-2.0
// Which links the calls of a run load, and with how much: asked of the NCCL model once per shape of call.
#pragma once

#include <utility>
#include <vector>

#include "sim/outcome/outcome.hpp"

namespace rehearse::sim {

struct ShapeLoad {
  std::vector<std::pair<LinkId, double>> bytes;  // of one call, by link, ascending
  Nanos latency = 0;                             // before anything moves
  [[nodiscard]] double on(LinkId link) const;
};

// Of one transfer of a rank; empty when it takes its recorded time.
[[nodiscard]] ShapeLoad transfer_load(const Evidence& evidence, size_t rank,
                                      const traces::Transfer& transfer);

// By index into Replayed::shapes.
[[nodiscard]] std::vector<ShapeLoad> shape_loads(const Evidence& evidence);

}  // namespace rehearse::sim
