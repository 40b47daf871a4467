// SPDX-License-Identifier: Apache-2.0
// One fault that may be the cause: where it may be, and the best of what was simulated of it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "faults/diagnose/candidates.hpp"
#include "faults/diagnose/trial.hpp"

namespace rehearse::faults {

// A setting that the configuration shows is worth this much of the score against one that nobody saw.
constexpr double kConfigured = 0.25;

struct Suspected {
  std::vector<Candidate> places;
  size_t best = 0;             // index of the place
  std::optional<Trial> trial;  // there
  std::string refused;         // why none could be simulated

  [[nodiscard]] double promise() const {
    return trial ? trial->shape + (places[best].configured ? kConfigured : 0) : -1;
  }
  [[nodiscard]] double rank() const {
    return trial ? trial->likeness.score + (places[best].configured ? kConfigured : 0) : -1;
  }
};

}  // namespace rehearse::faults
