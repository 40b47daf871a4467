// SPDX-License-Identifier: Apache-2.0
// A job that went wrong, as diagnose and fix take it: the scenario as it should be, as it was run,
// and what both show.
#pragma once

#include <optional>

#include "base/error.hpp"
#include "cli/context.hpp"
#include "faults/diagnose/diagnose.hpp"
#include "faults/fault_catalogue.hpp"
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
};

// `input` is a scenario with --set, --fault or --patch, which is simulated, or an outcome
// (`rehearse run --json`), whose scenario is --scenario or the one it names.
[[nodiscard]] Result<Case> load_case(Context& context, const std::string& input);
// The same of the first input.
[[nodiscard]] Result<Case> load_case(Context& context);

[[nodiscard]] Result<pb::Diagnosis> diagnose(const Case& what, Context& context);

}  // namespace rehearse::cli
