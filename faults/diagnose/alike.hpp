// SPDX-License-Identifier: Apache-2.0
// Causes that the evidence does not tell from the first one: those of its class (classes.yaml), and where logs are all there
// is, all whose simulated runs leave the same. Whether they look the same in this job the simulated runs tell.
#pragma once

#include "faults/diagnose/diagnose.hpp"
#include "faults/diagnose/suspected.hpp"

namespace rehearse::faults {

// Scores closer than this are not told apart by the evidence.
constexpr double kNoBetter = 0.01;
// Causes further apart than this are no equals, whatever their class.
constexpr double kClose = 0.1;

// Whether two simulated runs are equal within noise in what the evidence has measured.
[[nodiscard]] bool look_the_same(const Trial& a, const Trial& b, const Changes& evidence);

// Adds to the first cause of `diagnosis`, which is `all[0]`, the others that look the same.
void say_who_is_alike(const std::vector<Suspected>& all, const FaultClasses* classes,
                      const Clues& clues, pb::Diagnosis& diagnosis);

}  // namespace rehearse::faults
