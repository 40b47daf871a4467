// SPDX-License-Identifier: Apache-2.0
// Which symptom categories can be shown: every fault is run with its defaults, and every rule says what it warns of.
#pragma once

#include "base/error.hpp"
#include "faults/check/rules.hpp"
#include "faults/fault_catalogue.hpp"
#include "faults/proto/coverage.pb.h"
#include "faults/symptoms/categories.hpp"
#include "faults/world.hpp"

namespace rehearse::faults {

// Runs every fault on its scenario; one simulation each and one per scenario. Refusals are rows, not errors.
[[nodiscard]] Result<pb::FaultRuns> run_all(const FaultCatalogue& catalogue, const World& world,
                                            Reporter& reporter);
// The runs that are shipped with the catalogue.
[[nodiscard]] Result<pb::FaultRuns> shipped_runs();

// Joins runs and rules by category.
[[nodiscard]] pb::Coverage coverage(const pb::FaultRuns& runs, const FaultCatalogue& catalogue,
                                    const Rules& rules, const Categories& categories);

}  // namespace rehearse::faults
