// SPDX-License-Identifier: Apache-2.0
// Where the first cause could be just as well. Asked of faults whose place classes.yaml knows to be unseen, of ranks that were
// not recorded, and of all places where logs are all there is; whether it is so in this job the simulated runs tell.
#pragma once

#include "faults/diagnose/diagnose.hpp"
#include "faults/diagnose/suspected.hpp"

namespace rehearse::faults {

// Adds to the first cause of `diagnosis`, which is `first`, the places that look the same within noise; then it names no
// culprit, and the diagnosis says what to collect.
void say_where_else(const Suspected& first, const DiagnoseRequest& request, const Clues& clues,
                    Laboratory& laboratory, pb::Diagnosis& diagnosis);

}  // namespace rehearse::faults
