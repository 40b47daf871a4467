// SPDX-License-Identifier: Apache-2.0
// What words in a training script say of the training, by the table of signs (faults/check/tables/scripts.yaml).
#pragma once

#include <string>

#include "base/finding.hpp"
#include "faults/proto/check.pb.h"
#include "sim/proto/scenario.pb.h"

namespace rehearse::faults {

// Sets the facts of `document`; a sign that cannot be set becomes a finding.
void read_training_script(const std::string& text, const pb::CheckTables& tables,
                          pb::Scenario& document, Findings& findings);

}  // namespace rehearse::faults
