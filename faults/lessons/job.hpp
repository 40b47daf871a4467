// SPDX-License-Identifier: Apache-2.0
// The job of a lab: healthy, and broken as the files of a working folder say it. Where the fault is configuration it
// stands in those files; what is hardware or program is sealed (sim/scenario/sealed.hpp) and acts all the same.
#pragma once

#include <memory>
#include <vector>

#include "base/error.hpp"
#include "base/reporter.hpp"
#include "faults/fault_use.hpp"
#include "faults/lessons/lab_catalogue.hpp"
#include "sim/proto/outcome.pb.h"
#include "sim/scenario/scenario.hpp"

namespace rehearse::faults {

struct LabJob {
  std::shared_ptr<const LabEntry> lab;
  uint64_t seed = 1;
  FaultUse use;                   // the fault where the seed puts it
  pb::LabScript script;           // placeholders replaced
  sim::Scenario healthy;          // loaded
  pb::Outcome healthy_run;        // simulated
  pb::Scenario written;           // what the broken job's files say; its platform is expanded
  std::vector<pb::Patch> sealed;  // what they do not say
  std::vector<pb::Fix> fixes;     // of the fault
};

[[nodiscard]] Result<LabJob> prepare_job(std::shared_ptr<const LabEntry> lab, uint64_t seed,
                                         Reporter& reporter);

// What files say, ready to be simulated, with what is sealed in this lab whatever the document has of it.
[[nodiscard]] Result<sim::Scenario> load_job(const LabJob& job, pb::Scenario written,
                                             Reporter& reporter);

// The broken job's files with an attempt's edits made.
[[nodiscard]] Result<pb::Scenario> with_attempt(const LabJob& job, const pb::Attempt& attempt);

// The reference solution: the script's, else the first fix of the fault as patches.
[[nodiscard]] pb::Attempt solution_of(const LabJob& job);

}  // namespace rehearse::faults
