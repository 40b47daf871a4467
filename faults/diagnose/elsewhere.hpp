// SPDX-License-Identifier: Apache-2.0
// Where the first cause could be just as well. Asked of faults whose place classes.yaml knows to be unseen, of ranks that were
// not recorded, and of all places where logs are all there is; whether it is so in this job the simulated runs tell. Of
// causes that look the same (alike.hpp) the places count too.
#pragma once

#include "faults/diagnose/diagnose.hpp"
#include "faults/diagnose/suspected.hpp"

namespace rehearse::faults {

// Adds to the first cause of `diagnosis`, which is `all[0]`, the places that look the same within noise; then it names no
// culprit, and the diagnosis says what to collect. Causes that look the same are there already.
void say_where_else(const std::vector<Suspected>& all, const DiagnoseRequest& request,
                    const Clues& clues, Laboratory& laboratory, pb::Diagnosis& diagnosis);

}  // namespace rehearse::faults
