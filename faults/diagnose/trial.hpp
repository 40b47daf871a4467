// SPDX-License-Identifier: Apache-2.0
// One candidate fault simulated and compared with the evidence, its strength fitted.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <span>

#include "faults/diagnose/candidates.hpp"
#include "faults/diagnose/likeness.hpp"
#include "faults/world.hpp"

namespace rehearse::faults {

// The parameter that says how strong a fault is; null: it has none.
[[nodiscard]] const pb::Parameter* strength_of(const pb::Fault& fault);

struct Trial {
  FaultUse use;
  pb::Verdict verdict = pb::VERDICT_UNSPECIFIED;
  Changes changes;      // of the simulated fault against the simulated healthy run
  Likeness likeness;    // to the evidence
  double shape = 0;     // likeness if the strength were right
  double size = 0;      // magnitude()
  pb::Symptom symptom;  // of the simulated run, where the world tells
};

struct Measured {
  const pb::Outcome& outcome;  // observable part
  const Changes& changes;
  int64_t failed_ns = 0;  // when somebody first said so
  double pace = 1;        // healthy step as simulated over that of the evidence
};

// Counts simulations and stops at the limit. What was simulated once is not simulated again.
class Laboratory {
 public:
  // `baseline` is the observable outcome of `healthy` as simulated. All must outlive the laboratory.
  Laboratory(const sim::Scenario& healthy, const pb::Outcome& baseline, Measured evidence,
             const World& world, uint32_t limit)
      : healthy_(healthy), baseline_(baseline), evidence_(evidence), world_(world), limit_(limit) {}

  // The fault as it stands. kLimit when no simulation is left.
  [[nodiscard]] Result<Trial> once(const FaultUse& use);
  // Two faults at once, in the order of their ids; the trial's use is `second`.
  [[nodiscard]] Result<Trial> both(const FaultUse& first, const FaultUse& second);
  // The same with the strength that makes the magnitude that of the evidence: secants on the logarithms
  // of strength and magnitude, from the one given; effects are taken to be monotonic. The best of
  // what was tried; `start` where the fault has no strength. Where the evidence has no magnitude both ends of what is usual
  // are tried. Of a run that did not complete the fault's moment is moved until the run comes as far as the evidence.
  [[nodiscard]] Trial fitted(const Trial& start);
  // Where the evidence has no magnitude the best of what is usual, at both ends, and `start`.
  [[nodiscard]] Trial at_either_end(const Trial& start);
  // Where the run ends in another way than the evidence: the fault at an end of what is usual at which it does not; `start`
  // where it does at both.
  [[nodiscard]] Trial ending_alike(const Trial& start);
  // The same as fitted() in two rounds, and only where the default is far off: effects are not linear, and neither is their shape.
  [[nodiscard]] Trial roughly_fitted(const Trial& start);

  [[nodiscard]] uint32_t simulations() const { return simulations_; }
  // The user asked to stop: no simulation was made since, and what was found is not whole.
  [[nodiscard]] const std::optional<Error>& interrupted() const { return interrupted_; }
  [[nodiscard]] bool exhausted() const { return simulations_ >= limit_; }
  // From now on every fault is tried beside this one, which is in the job too; nothing: alone again.
  void beside(std::optional<FaultUse> other) { beside_ = std::move(other); }
  // At least so many simulations more than were made so far.
  void allow(uint32_t more) { limit_ = std::max(limit_, simulations_ + more); }

 private:
  [[nodiscard]] Result<Trial> simulate(std::span<const FaultUse> uses, const FaultUse& named);
  [[nodiscard]] Trial fit(const Trial& start, int rounds);
  [[nodiscard]] Trial timed(const Trial& start);

  const sim::Scenario& healthy_;
  const pb::Outcome& baseline_;
  Measured evidence_;
  const World& world_;
  uint32_t limit_;
  uint32_t simulations_ = 0;
  std::optional<FaultUse> beside_;
  std::optional<Error> interrupted_;
  std::map<std::string, Trial> done_;
};

}  // namespace rehearse::faults
