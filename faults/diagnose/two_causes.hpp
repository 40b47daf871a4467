// SPDX-License-Identifier: Apache-2.0
// Two causes at once, for evidence of which the best single cause leaves a part unexplained. What the first cause does is
// taken from the evidence; faults that could have made the rest are tried alone, and their changes added to the first one's. Those
// whose sums come nearest are tried in the job that has the first one, at all their places, and both strengths are fitted.
// Deterministic.
#pragma once

#include <optional>
#include <span>

#include "base/error.hpp"
#include "faults/diagnose/candidates.hpp"
#include "faults/diagnose/trial.hpp"

namespace rehearse::faults {

// A cause that was tried alone.
struct Alone {
  const Candidate& candidate;
  const Trial& trial;
};

struct TwoCauses {
  struct Part {
    Candidate candidate;             // with the use that fits best beside the other
    Likeness without;                // of the evidence to the other one alone
    std::vector<std::string> shows;  // in what it is needed, in words
  };
  Part first, second;
  Likeness likeness;  // of both together
};

// The pair that explains most, where it explains more than either alone (kSecondWorth); nothing otherwise. `firsts` are
// the single causes that are tried as the first, in that order; the laboratory is left as it was.
[[nodiscard]] Result<std::optional<TwoCauses>> find_two_causes(const Clues& clues,
                                                               const FaultCatalogue& catalogue,
                                                               std::span<const Alone> firsts,
                                                               Laboratory& laboratory);

// What a second cause must add to the likeness.
constexpr double kSecondWorth = 0.06;

}  // namespace rehearse::faults
