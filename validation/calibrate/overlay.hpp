// SPDX-License-Identifier: Apache-2.0
// A fit as people keep it: a patch that states the platform's parameters, with where they come from,
// how sure they are and joint draws. And the reverse: the draws of a patch, or of the priors where
// nothing was calibrated.
#pragma once

#include <string>
#include <vector>

#include "base/error.hpp"
#include "sim/proto/patch.pb.h"
#include "validation/calibrate/fit.hpp"

namespace rehearse::validation {

struct OverlaySource {
  std::string platform;
  std::vector<std::string> evidence;
  uint64_t seed = 0;
  uint32_t draws = 64;
};

[[nodiscard]] pb::Patch overlay(const Fit& fit, const OverlaySource& source);

// One patch per draw, of assignments only. kUsage when the patch holds fewer than `count`.
[[nodiscard]] Result<std::vector<pb::Patch>> draws_of(const pb::Calibration& calibration,
                                                      uint32_t count);
// Every parameter drawn by itself within what its prior allows; around what the platform states where it does.
[[nodiscard]] std::vector<pb::Patch> prior_draws(const pb::Efficiency& stated, uint64_t seed,
                                                 uint32_t count);

[[nodiscard]] const char* name_of(Standing standing);

}  // namespace rehearse::validation
