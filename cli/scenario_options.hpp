// SPDX-License-Identifier: Apache-2.0
// --set, --fault, --patch and --catalogue: how every verb that simulates takes its scenario.
#pragma once

#include <boost/program_options/options_description.hpp>
#include <optional>

#include "cli/context.hpp"
#include "faults/fault_catalogue.hpp"
#include "sim/proto/outcome.pb.h"
#include "sim/scenario/scenario.hpp"
#include "sim/simulate.hpp"

namespace rehearse::cli {

void add_scenario_options(boost::program_options::options_description& options);

// The shipped faults and those in the folders of --catalogue.
[[nodiscard]] Result<faults::FaultCatalogue> fault_catalogue(const Arguments& arguments);

// With one change as the command line writes it: option "set", "fault" or "patch" and its value.
[[nodiscard]] Result<sim::Scenario> with_edit(sim::Scenario scenario, const std::string& option,
                                              const std::string& value,
                                              const faults::FaultCatalogue& catalogue);

// A scenario as it is, and with what the command line changes in it.
struct Edited {
  sim::Scenario base;
  sim::Scenario changed;
  bool differs = false;                                       // something was changed
  std::vector<pb::Patch> patches = {};                        // what was applied, in order
  std::optional<pb::Calibration> calibration = std::nullopt;  // of the platform, by --patch-file
};

// Loads `what` and applies --set, --fault, --patch and --patch-file in the order written.
[[nodiscard]] Result<Edited> load_edited(Context& context, const std::string& what);
// The same of a scenario that is loaded.
[[nodiscard]] Result<Edited> edit(Context& context, sim::Scenario base);

// Simulates `changed`; when it differs, `base` too for its step times. Schema, version and symptom
// are filled in.
[[nodiscard]] Result<pb::Outcome> simulate_edited(const Edited& edited, Reporter& reporter);
[[nodiscard]] Result<pb::Outcome> simulate_edited(const Edited& edited, sim::Detail detail,
                                                  Reporter& reporter);

// The command line as words, for those who want to run it again: verb, inputs and every option that decides what is
// simulated.
[[nodiscard]] std::vector<std::string> command_words(const Context& context);

}  // namespace rehearse::cli
