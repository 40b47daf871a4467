// SPDX-License-Identifier: Apache-2.0
// One run of a campaign: a fault drawn and injected into a job on a hidden machine, measured, diagnosed
// without being told, and the fix of the first cause tried on the hidden machine.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "faults/fault_catalogue.hpp"
#include "faults/fault_classes.hpp"
#include "faults/world.hpp"
#include "sim/scenario/scenario.hpp"
#include "validation/proto/campaign.pb.h"

namespace rehearse::validation {

// A job with its healthy run as the diagnoser simulates it.
struct PreparedJob {
  pb::BlindJob job;
  sim::Scenario scenario;
  pb::Outcome baseline;
};

// What a run is diagnosed from: its observable outcome, or what its ranks left behind (faults/diagnose/job_logs.hpp).
enum class EvidenceKind { kOutcome, kLogs };

struct BlindRun {
  std::vector<std::shared_ptr<const faults::FaultEntry>> faults;  // to inject; empty: none
  pb::CampaignRun::Truth truth = pb::CampaignRun::CATALOGUED;
  uint64_t seed = 0;
  std::set<std::string> jobs;  // names of those to draw from
  bool blind = true;           // false: the diagnoser's own machine, without noise
  EvidenceKind evidence = EvidenceKind::kOutcome;
};

struct BlindContext {
  const std::vector<PreparedJob>& jobs;
  const faults::FaultCatalogue& catalogue;
  const faults::FaultClasses& classes;
  const faults::World& world;
  uint32_t max_simulations = 90;
};

// Draws without effect, and those that a job has no place for, are drawn again, so often at most; then the fault's own
// scenario and defaults are taken.
constexpr uint32_t kRedraws = 8;
// Draws that leave nothing in logs; then the fault is taken to be one that does not.
constexpr uint32_t kSilentDraws = 3;
// A run that is slower by less than this is not noticed by anybody: the classifier's 5 %, and what the noise of two
// means of few steps can hide.
constexpr double kNoticed = 0.065;

[[nodiscard]] Result<pb::CampaignRun> run_blind(const BlindRun& run, const BlindContext& context);

}  // namespace rehearse::validation
