// SPDX-License-Identifier: Apache-2.0
// Fits the rates of a kind of GPU to measured step times: robust least squares of relative errors
// (Huber weights), linear in 1 / e_g, 1 / e_a and k, each kept within physical bounds. The host
// cost is not fitted: runs that are bound by it say nothing of the others and are few.
#pragma once

#include <vector>

#include "validation/step_time/layout.hpp"

namespace rehearse::validation {

struct MeasuredStep {
  StepTerms terms;
  double seconds = 0;
};

// Fewer than four rows: the priors.
[[nodiscard]] StepRates fit_rates(const std::vector<MeasuredStep>& steps);

}  // namespace rehearse::validation
