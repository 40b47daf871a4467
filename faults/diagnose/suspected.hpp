// SPDX-License-Identifier: Apache-2.0
// Faults that may be the cause: where each may be, and the best of what was simulated of it.
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

// Candidates of one fault together, in the order in which the first of each came.
[[nodiscard]] std::vector<Suspected> by_fault(std::vector<Candidate> candidates);

// Takes out the faults that the catalogue does not list for this symptom and the configuration does not show.
[[nodiscard]] std::vector<Suspected> take_unexpected(std::vector<Suspected>& all);

// Every fault at its most suspect place, the promising ones everywhere, the most alike fitted; then `all` is sorted, the best
// first. Fails only when it is interrupted.
[[nodiscard]] Result<void> try_all(std::vector<Suspected>& all, bool from_logs,
                                   Laboratory& laboratory);

}  // namespace rehearse::faults
