// SPDX-License-Identifier: Apache-2.0
// Many blind runs: every fault so many times at random places, some faults that the catalogue does not
// have, some healthy jobs. Runs are forked children, several at a time; the same seed gives the same
// report on any number of cores, and in any number of parts.
#pragma once

#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/reporter.hpp"
#include "faults/fault_catalogue.hpp"
#include "validation/blind/kept_runs.hpp"
#include "validation/proto/campaign.pb.h"

namespace rehearse::validation {

struct CampaignRequest {
  std::vector<std::string> faults;  // ids; empty: all of the catalogue
  uint32_t seeds = 1;               // runs of each fault
  uint64_t seed = 1;
  bool blind = false;      // hidden machine, noise, unknown faults and healthy jobs
  uint32_t compound = 1;   // faults at once
  unsigned jobs = 1;       // children at a time
  bool from_logs = false;  // diagnosed from logs and dumps alone
  // Every so many-th run from this one, of all of them.
  uint32_t part = 0, parts = 1;
  // Where runs are kept as they end; those that are there are not made again. Null: nowhere.
  const KeptRuns* kept = nullptr;
  // None is made: kMissingInput where one is not kept.
  bool only_kept = false;
};

// By fault and number of the run; unknown and healthy ones last. Of a part its own.
[[nodiscard]] Result<std::vector<pb::CampaignRun>> run_campaign(
    const CampaignRequest& request, const faults::FaultCatalogue& catalogue, Reporter& reporter);

// Shares of the runs that count, 0 to 1; of none: 1 (0 for false alarms).
struct CampaignFigures {
  size_t runs = 0;
  size_t counted = 0;  // runs of faults of the catalogue that showed something
  double symptom = 1, top1 = 1, top3 = 1, culprit = 1, fix = 1;
  double in_turn = 1;  // of several faults at once: repaired one after the other
  double false_alarms = 0, unknown = 1;
  size_t culprits = 0;  // runs whose fault has a place, and that is right or wrong
  size_t not_known =
      0;  // and those in which nothing shows it, which is what the diagnosis says; not counted
  size_t alike = 0;  // of top1: counted for a fault of the same class
  size_t healthy = 0, outside = 0, failed = 0, simulations = 0;
  size_t silent = 0;    // that leave nothing in logs; not counted
  size_t unlisted = 0;  // of those counted: with a symptom that the catalogue does not list
  // Draws before those that were diagnosed: nobody would notice, no place for it, hidden by another fault, nothing in logs.
  size_t redrawn = 0, refused = 0, hidden = 0, silent_draws = 0;
};
[[nodiscard]] CampaignFigures figures_of(const std::vector<pb::CampaignRun>& runs);

// The runs of faults that are simulated, and of those that a rule of the check finds.
struct RunsByGrade {
  std::vector<pb::CampaignRun> simulated, by_rule;
};
[[nodiscard]] RunsByGrade by_grade(const std::vector<pb::CampaignRun>& runs);

}  // namespace rehearse::validation
