// SPDX-License-Identifier: Apache-2.0
// Kinds of change, and how far predictions of each kind were from measured ones, nothing being fitted to them: ratios of two
// measured configurations (validation/figures/change_errors.yaml, written by `rehearse validate --save-changes`). A band
// combines this error with draws over calibrated parameters (band.hpp). Pure but for reading the figures.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/scenario/transforms.hpp"
#include "validation/proto/change_errors.pb.h"

namespace rehearse::validation {

using sim::Change;
using sim::kChanges;
[[nodiscard]] const char* name_of(Change change);

// What sets `changed` apart from `base`; calibrated shares are no change. Empty: nothing.
[[nodiscard]] std::set<Change> changes_between(const sim::Scenario& base,
                                               const sim::Scenario& changed);

// Errors of one kind of change.
struct ChangeError {
  Change change = Change::kAlgorithm;
  size_t rows = 0;            // pairs of measured configurations
  size_t configurations = 0;  // groups of rows that are independent of each other
  // ln(measured / predicted) of the ratio at 5, 10, ... 95 %.
  std::vector<double> quantiles;

  // The error at a share of all, 0 to 1, between quantiles in proportion; beyond 5 and 95 % those.
  [[nodiscard]] double at(double share) const;
};

class ChangeErrors {
 public:
  // Of what is shipped; kinds without figures are unvalidated.
  [[nodiscard]] static Result<ChangeErrors> load_shipped();
  [[nodiscard]] static Result<ChangeErrors> read(const pb::ChangeErrors& document,
                                                 const std::string& where);

  // Null: unvalidated.
  [[nodiscard]] const ChangeError* find(Change change) const;
  // Of several at once: the widest; null when one of them is unvalidated.
  [[nodiscard]] const ChangeError* find(const std::set<Change>& changes) const;

 private:
  std::vector<ChangeError> errors_;
};

}  // namespace rehearse::validation
