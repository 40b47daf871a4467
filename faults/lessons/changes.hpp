// SPDX-License-Identifier: Apache-2.0
// What a learner changed in a job that is no repair: parts of the machine that were in order, less work, longer timers,
// descriptions removed, patches that no person could carry out. Pure functions of documents; nothing is simulated.
#pragma once

#include <string>
#include <vector>

#include "faults/check/rules.hpp"
#include "faults/lessons/job.hpp"
#include "faults/proto/lab.pb.h"

namespace rehearse::faults {

// The three jobs of a check, loaded.
struct LabJobs {
  const sim::Scenario& healthy;
  const sim::Scenario& broken;
  const sim::Scenario& learners;
};

// Places of the machine that differ from the broken job's and were in order there: "nodes/0/nics/0/bandwidth".
[[nodiscard]] std::vector<std::string> machine_changes(const LabJobs& jobs);

// In words, what of the work of a step is less or other than in the healthy job; empty: nothing.
[[nodiscard]] std::string work_lost(const LabJobs& jobs);
// Samples of one step of all ranks; 1 where the trace does not say.
[[nodiscard]] double samples_per_step(const sim::Scenario& job);

// Names of timers that are longer than in the broken job: "launch.collective_timeout", "NCCL_IB_TIMEOUT".
[[nodiscard]] std::vector<std::string> longer_timers(const LabJobs& jobs,
                                                     const pb::CheckTables& tables);

// What the broken job says of its training and the learner's leaves out: "learning_rate".
[[nodiscard]] std::vector<std::string> silenced(const LabJobs& jobs);

// Variables of a rank that were in order and that the learner took away all together, with the wrong one among them:
// "NCCL_DEBUG", "OMP_NUM_THREADS"; empty where one of them is left, or where there was only one.
[[nodiscard]] std::vector<std::string> emptied_environment(const LabJobs& jobs);

// Remarks about the learner's `patches`: not-a-repair, too-broad, unneeded.
[[nodiscard]] std::vector<pb::LabRemark> judge_patches(const pb::Scenario& written,
                                                       const LabJob& job);

}  // namespace rehearse::faults
