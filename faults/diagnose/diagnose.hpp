// SPDX-License-Identifier: Apache-2.0
// From an outcome to its cause. Rules propose faults, places and values (candidates.hpp); each fault is
// injected into the healthy scenario at its most suspect place and simulated, and its changes
// compared with those of the evidence (likeness.hpp). The most alike are then tried at their other
// places and with fitted strengths. The score is the likeness; what the configuration shows goes before
// equals. Where the best leaves something unexplained, two causes at once are tried (two_causes.hpp).
// When nothing reaches kExplains the cause is unknown: it is not in the catalogue. The
// diagnosis sees the observable part of the evidence only (observable.hpp). Deterministic.
#pragma once

#include <set>
#include <string>

#include "base/error.hpp"
#include "faults/fault_catalogue.hpp"
#include "faults/fault_classes.hpp"
#include "faults/fault_use.hpp"
#include "faults/proto/diagnosis.pb.h"
#include "faults/world.hpp"

namespace rehearse::faults {

struct DiagnoseRequest {
  const pb::Outcome& evidence;
  const sim::Scenario& healthy;            // the job as it should be
  const pb::Launch* configured = nullptr;  // expanded launch as it really was; null: unknown
  const pb::Outcome* baseline =
      nullptr;  // the healthy run where the evidence comes from; null: unknown
  // The healthy run as simulated here; null: simulated when needed.
  const pb::Outcome* simulated = nullptr;
  const FaultClasses* classes = nullptr;  // faults that look alike; null: not said
  // Evidence, healthy runs and `world` are what logs tell of runs (job_logs.hpp).
  bool from_logs = false;
  uint32_t max_simulations = 120;  // of single causes
  // More, of those that the catalogue does not list for the symptom, where the others do not explain it; 0: they are not tried.
  uint32_t max_simulations_of_others = 120;
  uint32_t max_simulations_of_two =
      140;  // more, where one does not explain it; 0: one is looked for
};

// Causes below this likeness do not explain the evidence.
constexpr double kExplains = 0.7;
// Other places at which the first cause is tried, where nothing may tell them apart (fault_classes.hpp).
constexpr uint32_t kElsewhereTried = 8;
// From logs, where the first few others look the same: so many more.
constexpr uint32_t kElsewhereInLogs = 64;

// Causes by score, one per fault. A healthy outcome has none. A candidate that cannot be simulated
// is ranked behind the others with what the simulator said.
[[nodiscard]] Result<pb::Diagnosis> diagnose(const DiagnoseRequest& request,
                                             const FaultCatalogue& catalogue, const World& world);

// The place of a fault as culprits: ranks, nodes, links; of a GPU the rank on it.
void add_culprits(const FaultUse& use, const pb::Scenario& document, pb::Cause& cause);
// The same as names of ranks and links: a node is all its ranks.
[[nodiscard]] std::set<std::string> places_of(const FaultUse& use, const pb::Scenario& document);

}  // namespace rehearse::faults
