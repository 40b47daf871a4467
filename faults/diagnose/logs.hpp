// SPDX-License-Identifier: Apache-2.0
// Causes from NCCL's logs alone: settings that NCCL says it read, the network it uses, and its warnings,
// against what the catalogue says of each fault (its settings, and the lines quoted in `in-logs`). Rules;
// nothing is simulated. Pure functions.
#pragma once

#include "faults/diagnose/job_logs.hpp"
#include "faults/fault_catalogue.hpp"
#include "faults/proto/diagnosis.pb.h"

namespace rehearse::faults {

// Symptom B3 for a network over sockets that some process was told or forced to take, B1 (B2: time-outs) for
// warnings of communicators that did not come up, D1.1 for those that did; healthy otherwise. With errors that ranks printed
// and flight recorder dumps beside the logs, whichever there are; dumps go first.
[[nodiscard]] pb::Diagnosis diagnose_by_rules(const JobLogs& logs, const FaultCatalogue& catalogue);

}  // namespace rehearse::faults
