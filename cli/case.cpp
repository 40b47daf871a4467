// SPDX-License-Identifier: Apache-2.0
#include "cli/case.hpp"

#include <filesystem>

#include "base/document.hpp"
#include "cli/outcome_file.hpp"
#include "cli/report/documents.hpp"
#include "cli/scenario_options.hpp"
#include "faults/diagnose/from_logs.hpp"
#include "faults/diagnose/observable.hpp"
#include "faults/world.hpp"
#include "sim/prepared.hpp"
#include "sim/simulate.hpp"

namespace rehearse::cli {
namespace {

constexpr size_t kCausesTried = 5;
constexpr double kUnlikely = 0.2;  // score below which the fixes of a cause are not tried

// Where an outcome is from, without what was changed on the way. A calibration says what the platform is and stays.
pb::Origin unchanged(const pb::Origin& origin) {
  pb::Origin out = origin;
  out.clear_edits();
  for (const pb::Patch& patch : origin.edits()) {
    if (patch.has_calibration()) *out.add_edits() = patch;
  }
  return out;
}

// The job of an outcome as it should be.
Result<sim::Scenario> healthy_of(Context& context, const std::string& file,
                                 const pb::Outcome& outcome) {
  if (context.has("scenario") || outcome.origin().scenario().empty()) {
    return sim::load_scenario(
        context.has("scenario") ? context.get<std::string>("scenario") : outcome.scenario(),
        context.reporter());
  }
  const std::string folder = std::filesystem::path(file).parent_path().string();
  return sim::load_origin(unchanged(outcome.origin()), folder, context.reporter());
}

Result<Case> empty_case(Context& context) {
  RH_TRY(faults::FaultCatalogue catalogue, fault_catalogue(context.arguments()));
  return Case{.catalogue = std::move(catalogue),
              .healthy = {},
              .baseline = {},
              .broken = {},
              .evidence = {}};
}

}  // namespace

Result<Case> load_case(Context& context) { return load_case(context, context.inputs().front()); }

Result<Case> load_case(Context& context, const std::string& input) {
  RH_TRY(Case what, empty_case(context));
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
  sim::prepare(scenario);  // for the many runs that tell causes and fixes apart
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

Result<Case> case_of_logs(Context& context, faults::JobLogs logs) {
  RH_TRY(Case what, empty_case(context));
  if (!context.has("scenario")) {
    return fail(Code::kUsage, "logs and dumps do not tell what job they are of",
                context.inputs().front(), "name the job as it should be with --scenario");
  }
  RH_TRY(what.healthy,
         sim::load_scenario(context.get<std::string>("scenario"), context.reporter()));
  sim::prepare(what.healthy);
  RH_TRY(what.baseline, faults::simulated_world(context.reporter()).simulate(what.healthy));
  what.evidence = what.baseline;
  what.logs = std::move(logs);
  return what;
}

Result<Case> case_of(const pb::Outcome& outcome, const std::string& path, Context& context) {
  RH_TRY(Case what, empty_case(context));
  const pb::Origin healthy = unchanged(outcome.origin());
  for (const pb::Patch& patch : healthy.edits()) what.calibration = patch.calibration();
  const std::string folder = std::filesystem::path(path).parent_path().string();
  Reporter& reporter = context.reporter();
  RH_TRY(what.healthy, sim::load_origin(healthy, folder, reporter));
  RH_TRY(what.broken, sim::load_origin(outcome.origin(), folder, reporter));
  sim::prepare(what.healthy);  // for the runs that tell causes apart, and for those with fixes
  sim::prepare(*what.broken);
  RH_TRY(what.evidence, faults::simulated_world(reporter).simulate(*what.broken));
  if (what.evidence.verdict() != outcome.verdict() || what.evidence.end_ns() != outcome.end_ns()) {
    return fail(Code::kBadInput, "its scenario, simulated again, ends otherwise", path,
                "make the outcome anew with `rehearse run SCENARIO --json`");
  }
  RH_TRY(what.baseline, sim::simulate(what.healthy, reporter));
  what.evidence = faults::observable(what.evidence);
  *what.evidence.mutable_baseline_step_time_ns() = what.baseline.step_time_ns();
  return what;
}

Result<std::vector<std::vector<faults::FaultUse>>> likely_causes(
    const pb::Diagnosis& diagnosis, const faults::FaultCatalogue& catalogue) {
  std::vector<std::vector<faults::FaultUse>> groups;
  bool together = false;
  for (const pb::Cause& cause : diagnosis.causes()) {
    if (groups.size() >= kCausesTried || cause.score() < kUnlikely) break;
    RH_TRY(faults::FaultUse use, faults::parse_fault(cause.use(), catalogue));
    if (!together || cause.together().empty()) groups.emplace_back();
    groups.back().push_back(std::move(use));
    together = !cause.together().empty();
  }
  return groups;
}

Result<pb::Diagnosis> diagnose(const Case& what, const faults::World& world, uint32_t max_runs) {
  RH_TRY(const faults::FaultClasses classes, faults::FaultClasses::load_shipped());
  if (what.logs) {
    return faults::diagnose_from_logs({.logs = *what.logs,
                                       .healthy = what.healthy,
                                       .simulated = what.baseline,
                                       .classes = &classes,
                                       .max_simulations = max_runs},
                                      what.catalogue, world);
  }
  return faults::diagnose({.evidence = what.evidence,
                           .healthy = what.healthy,
                           .configured = what.broken ? &what.broken->document.launch() : nullptr,
                           .baseline = &what.baseline,
                           .classes = &classes,
                           .max_simulations = max_runs,
                           .max_simulations_of_others = max_runs,
                           .max_simulations_of_two = max_runs},
                          what.catalogue, world);
}

}  // namespace rehearse::cli
