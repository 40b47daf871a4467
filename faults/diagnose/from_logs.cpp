// SPDX-License-Identifier: Apache-2.0
#include "faults/diagnose/from_logs.hpp"

#include "faults/symptoms/classifier.hpp"

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
  out.run = outcome_in(request.logs, job);
  keep_what_differs(out.usual, out.run);
  out.launch = launch_in(request.logs, job);
  return out;
}

}  // namespace

Result<bool> logs_tell(const LogsRequest& request) {
  RH_TRY(const SeenInLogs seen, seen_of(request));
  return classify(seen.run).id() != kHealthy || !seen.run.findings().empty() ||
         !seen.run.culprits().empty() ||
         (seen.launch && reads_other_settings(*seen.launch, request.healthy.document.launch()));
}

Result<pb::Diagnosis> diagnose_from_logs(const LogsRequest& request,
                                         const FaultCatalogue& catalogue, const World& world) {
  RH_TRY(const SeenInLogs seen, seen_of(request));
  return diagnose({.evidence = seen.run,
                   .healthy = request.healthy,
                   .configured = seen.launch ? &*seen.launch : nullptr,
                   .baseline = &seen.usual,
                   .simulated = &seen.usual,
                   .classes = request.classes,
                   .from_logs = true,
                   .max_simulations = request.max_simulations,
                   .max_simulations_of_two = request.max_simulations},
                  catalogue, seen_in_logs(world, request.healthy.document, seen.usual));
}

}  // namespace rehearse::faults
