// SPDX-License-Identifier: Apache-2.0
// What `rehearse diagnose` is given, sorted by what it is: a scenario or an outcome, and evidence of real runs in files
// and folders (flight recorder dumps, NCCL logs, errors that ranks printed).
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "cli/context.hpp"
#include "faults/diagnose/job_logs.hpp"

namespace rehearse::cli {

struct EvidenceInput {
  std::string main;                           // scenario or outcome; empty: there is none
  faults::JobLogs logs;                       // dumps: one per rank, the first that was found
  std::vector<std::filesystem::path> traces;  // recordings of one job
  uint32_t ignored = 0;                       // files that hold no evidence
};

// kUsage for two scenarios or outcomes, kBadInput when nothing is evidence and no recordings are there, and for dumps of one rank that
// differ: they are not of one job.
[[nodiscard]] Result<EvidenceInput> sort_inputs(Context& context);

}  // namespace rehearse::cli
