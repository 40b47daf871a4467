// SPDX-License-Identifier: Apache-2.0
// A job that went wrong, as diagnose and fix take it: the scenario as it should be, as it was run,
// and what both show.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "cli/context.hpp"
#include "faults/diagnose/diagnose.hpp"
#include "faults/diagnose/job_logs.hpp"
#include "faults/fault_catalogue.hpp"
#include "faults/fault_use.hpp"
#include "faults/world.hpp"
#include "sim/scenario/scenario.hpp"

namespace rehearse::cli {

struct Case {
  faults::FaultCatalogue catalogue;
  sim::Scenario healthy;
  pb::Outcome baseline;
  // The scenario with the edits of the command line; unset when the evidence is an outcome file.
  std::optional<sim::Scenario> broken;
  // What is observed; what was injected is removed from it.
  pb::Outcome evidence;
  std::optional<pb::Calibration> calibration = std::nullopt;  // of the platform, by --patch-file
  // What the ranks left behind, where that is all there is; `evidence` is then the healthy run.
  std::optional<faults::JobLogs> logs = std::nullopt;
};

// `input` is a scenario with --set, --fault or --patch, which is simulated, or an outcome
// (`rehearse run --json`), whose scenario is --scenario or the one it names.
[[nodiscard]] Result<Case> load_case(Context& context, const std::string& input);
// The same of the first input.
[[nodiscard]] Result<Case> load_case(Context& context);

// A job of which logs and dumps are all there is; the job as it should be is --scenario.
[[nodiscard]] Result<Case> case_of_logs(Context& context, faults::JobLogs logs);

// Of an outcome that remembers what it was simulated from (`origin`): that scenario with its edits and without, run
// again. Files it names are looked for beside `path` too. kBadInput when it does not tell, or when the run ends
// otherwise today.
[[nodiscard]] Result<Case> case_of(const pb::Outcome& outcome, const std::string& path,
                                   Context& context);

constexpr uint32_t kMostRuns =
    120;  // that a diagnosis simulates, and as many more to find two causes

[[nodiscard]] Result<pb::Diagnosis> diagnose(const Case& what, const faults::World& world,
                                             uint32_t max_runs);

// Causes whose fixes are worth a try, likeliest first; those of one group are there together.
[[nodiscard]] Result<std::vector<std::vector<faults::FaultUse>>> likely_causes(
    const pb::Diagnosis& diagnosis, const faults::FaultCatalogue& catalogue);

}  // namespace rehearse::cli
