// SPDX-License-Identifier: Apache-2.0
// Diagnosis from logs and dumps of a job whose scenario is known: candidates are simulated, their logs written and read, and
// compared with those that were found (job_logs.hpp). Deterministic.
#pragma once

#include "faults/diagnose/diagnose.hpp"
#include "faults/diagnose/job_logs.hpp"

namespace rehearse::faults {

struct LogsRequest {
  const JobLogs& logs;
  const sim::Scenario& healthy;  // the job as it should be
  const pb::Outcome& simulated;  // its run as simulated here
  const FaultClasses* classes = nullptr;
  uint32_t max_simulations = 120;
};

[[nodiscard]] Result<pb::Diagnosis> diagnose_from_logs(const LogsRequest& request,
                                                       const FaultCatalogue& catalogue,
                                                       const World& world);

}  // namespace rehearse::faults
