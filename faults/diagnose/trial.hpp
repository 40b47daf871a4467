// SPDX-License-Identifier: Apache-2.0
// One candidate fault simulated and compared with the evidence, its strength fitted.
#pragma once

#include <optional>

#include "faults/diagnose/candidates.hpp"
#include "faults/diagnose/likeness.hpp"
#include "faults/world.hpp"

namespace rehearse::faults {

struct Trial {
  FaultUse use;
  Likeness likeness;
  int64_t step = 0;  // mean simulated step
};

// Counts simulations and stops at the limit.
class Laboratory {
 public:
  Laboratory(const sim::Scenario& healthy, const pb::Outcome& evidence, const World& world,
             uint32_t limit)
      : healthy_(healthy), evidence_(evidence), world_(world), limit_(limit) {}

  // The best fit of the fault at this place. The strength is searched by regula falsi on the
  // logarithms of strength and step time, on the side of the default where the evidence lies;
  // effects are taken to be monotonic. kLimit when no simulation is left.
  [[nodiscard]] Result<Trial> best_fit(const FaultUse& use);
  [[nodiscard]] uint32_t simulations() const { return simulations_; }
  [[nodiscard]] bool exhausted() const { return simulations_ >= limit_; }

 private:
  [[nodiscard]] Result<Trial> once(const FaultUse& use);
  [[nodiscard]] Trial fit(Trial start, const pb::Parameter& strength);

  const sim::Scenario& healthy_;
  const pb::Outcome& evidence_;
  const World& world_;
  uint32_t limit_;
  uint32_t simulations_ = 0;
};

}  // namespace rehearse::faults
