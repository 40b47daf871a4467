// SPDX-License-Identifier: Apache-2.0
#include "cli/case.hpp"

#include <filesystem>

#include "base/document.hpp"
#include "cli/outcome_file.hpp"
#include "cli/report/documents.hpp"
#include "cli/scenario_options.hpp"
#include "faults/diagnose/observable.hpp"
#include "faults/world.hpp"
#include "sim/simulate.hpp"

namespace rehearse::cli {
namespace {

// The job of an outcome as it should be: the scenario that it is of, without what was changed on the way. A
// calibration says what the platform is and stays.
Result<sim::Scenario> healthy_of(Context& context, const std::string& file,
                                 const pb::Outcome& outcome) {
  if (context.has("scenario") || outcome.origin().scenario().empty()) {
    return sim::load_scenario(
        context.has("scenario") ? context.get<std::string>("scenario") : outcome.scenario(),
        context.reporter());
  }
  pb::Origin origin = outcome.origin();
  origin.clear_edits();
  for (const pb::Patch& patch : outcome.origin().edits()) {
    if (patch.has_calibration()) *origin.add_edits() = patch;
  }
  const std::string folder = std::filesystem::path(file).parent_path().string();
  return sim::load_origin(origin, folder, context.reporter());
}

}  // namespace

Result<Case> load_case(Context& context) { return load_case(context, context.inputs().front()); }

Result<Case> load_case(Context& context, const std::string& input) {
  RH_TRY(faults::FaultCatalogue catalogue, fault_catalogue(context.arguments()));
  Case what{.catalogue = std::move(catalogue),
            .healthy = {},
            .baseline = {},
            .broken = {},
            .evidence = {}};
  const bool observed = is_outcome_file(input);
  sim::Scenario scenario;
  if (observed) {
    RH_TRY(what.evidence, read_outcome(input));
    RH_TRY(scenario, healthy_of(context, input, what.evidence));
  }
  if (!observed && context.has("scenario")) {
    return fail(Code::kUsage, "--scenario goes with an outcome", input,
                "leave it out, or give the outcome (.json) first");
  }
  if (!observed) {
    RH_TRY(scenario, sim::load_scenario(input, context.reporter()));
  }
  RH_TRY(Edited edited, edit(context, std::move(scenario)));
  if (observed && edited.differs) {
    return fail(Code::kUsage, "an outcome cannot be changed", input,
                "leave out --set, --fault and --patch, or give the scenario itself");
  }
  what.healthy = std::move(edited.base);
  what.calibration = std::move(edited.calibration);
  RH_TRY(what.baseline, sim::simulate(what.healthy, context.reporter()));
  if (!observed) {
    what.broken = std::move(edited.changed);
    RH_TRY(what.evidence, faults::simulated_world(context.reporter()).simulate(*what.broken));
  }
  what.evidence = faults::observable(what.evidence);
  *what.evidence.mutable_baseline_step_time_ns() = what.baseline.step_time_ns();
  return what;
}

Result<pb::Diagnosis> diagnose(const Case& what, Context& context) {
  RH_TRY(const faults::FaultClasses classes, faults::FaultClasses::load_shipped());
  return faults::diagnose({.evidence = what.evidence,
                           .healthy = what.healthy,
                           .configured = what.broken ? &what.broken->document.launch() : nullptr,
                           .baseline = &what.baseline,
                           .classes = &classes},
                          what.catalogue, faults::simulated_world(context.reporter()));
}

}  // namespace rehearse::cli
