// SPDX-License-Identifier: Apache-2.0
// How alike two runs changed against their healthy runs: a simulated fault against the evidence.
//
// Per aspect: 1 - (sum of differences beyond noise) / (sum of the larger of both changes), that is
// Jaccard's measure for weighted sets; opposite signs add up. Changes below their noise do not count.
// An aspect counts with its weight, less when its largest change hardly stands out from noise, and not at
// all when nothing changed in either run: a fault that would change what has not changed is as wrong as
// one that does not change what has. The score is the mean, 0 to 1; different verdicts score 0.
// Pure functions.
#pragma once

#include <string>
#include <vector>

#include "faults/diagnose/changes.hpp"

namespace rehearse::faults {

struct Likeness {
  double score = 0;
  std::vector<std::string> same;        // what agrees, in words
  std::vector<std::string> different;   // what does not
  std::map<Aspect, double> aspects;     // 0 to 1, those that count
  std::map<Aspect, std::string> words;  // of each of them
  // Clear changes of what points at single parts that are not alike, and aspects in which more parts stand out (slow
  // ranks, long steps, busy links) than are simulated, however alike the others are: another cause, or one more.
  std::vector<Aspect> unexplained;
};

// `scale` multiplies what grows with the strength of the simulated fault, to compare shapes before a
// strength is fitted.
[[nodiscard]] Likeness likeness(const Changes& evidence, const Changes& simulated,
                                double scale = 1);

// What both do together when neither is in the other's way: `more` times `scale` (as above) on top of `some`.
[[nodiscard]] Changes together(const Changes& some, const Changes& more, double scale = 1);
// What is left of the evidence when a simulated fault is taken from it. Changes that are within noise of what the fault does
// are gone.
[[nodiscard]] Changes left_by(const Changes& evidence, const Changes& simulated);

// How far the run is from the healthy one: the part of a step it takes longer, else the memory it takes
// more (sum of shares of the capacity). 0: neither.
[[nodiscard]] double magnitude(const Changes& changes);
// Whether what that is the size of is more than noise.
[[nodiscard]] bool is_clear(const Changes& changes);

}  // namespace rehearse::faults
