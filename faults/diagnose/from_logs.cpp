// SPDX-License-Identifier: Apache-2.0
#include "faults/diagnose/from_logs.hpp"

namespace rehearse::faults {
namespace {

struct SeenInLogs {
  pb::Outcome usual, run;
  std::optional<pb::Launch> launch;
};

Result<SeenInLogs> seen_of(const LogsRequest& request) {
  const pb::Scenario& job = request.healthy.document;
  SeenInLogs out;
  RH_TRY(const LogFiles files, log_files(request.healthy, request.simulated));
  out.usual = outcome_in(read_logs(files), job);
  // Moments are told in steps.
  out.usual.mutable_step_time_ns()->set_mean(request.simulated.step_time_ns().mean());
  out.run = outcome_in(request.logs, job);
  keep_what_differs(out.usual, out.run);
  out.launch = launch_in(request.logs, job);
  return out;
}

}  // namespace

Result<pb::Diagnosis> diagnose_from_logs(const LogsRequest& request,
                                         const FaultCatalogue& catalogue, const World& world) {
  RH_TRY(const SeenInLogs seen, seen_of(request));
  return diagnose(
      {.evidence = seen.run,
       .healthy = request.healthy,
       .configured = seen.launch ? &*seen.launch : nullptr,
       .baseline = &seen.usual,
       .simulated = &seen.usual,
       .classes = request.classes,
       .from_logs = true,
       // All faults are tried at once: no symptom is sure enough to keep some back.
       .max_simulations = 2 * request.max_simulations,
       .max_simulations_of_two = request.max_simulations},
      catalogue,
      seen_in_logs(world, request.healthy.document, seen.usual, request.simulated.step_time_ns()));
}

}  // namespace rehearse::faults
