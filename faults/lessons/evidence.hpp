// SPDX-License-Identifier: Apache-2.0
// What a practitioner would have of a job that went wrong: what ranks printed, NCCL's logs, flight recorder dumps, views
// like those of nvidia-smi and ibstat, where each rank's step went. All of it is made from one simulated run; nothing is
// canned.
#pragma once

#include <map>
#include <string>

#include "base/error.hpp"
#include "sim/proto/outcome.pb.h"
#include "sim/scenario/scenario.hpp"

namespace rehearse::faults {

// Texts by the name of their file: "screen.txt", "nccl/rank-3.log". Views that the run says nothing of are left out.
[[nodiscard]] Result<std::map<std::string, std::string>> evidence_of(const sim::Scenario& job,
                                                                     const pb::Outcome& outcome);

}  // namespace rehearse::faults
