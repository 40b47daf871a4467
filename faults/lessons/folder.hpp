// SPDX-License-Identifier: Apache-2.0
// The working folder of a lab:
//
//   README.md      the task, and what can be done
//   job.yaml       how the job is launched and what it trains: a scenario, `rehearse run job.yaml`
//   cluster.yaml   the machines
//   env/nodeN.env  the environment of the processes on a node
//   evidence/      what the broken run left behind
//   .lab.yaml      which lab and seed this is, hints taken, checks made
//
// Every file is written whole or not at all. The same lab and seed give the same bytes.
#pragma once

#include <filesystem>
#include <map>

#include "base/atomic_file.hpp"
#include "base/error.hpp"
#include "base/reporter.hpp"
#include "faults/lessons/job.hpp"
#include "faults/proto/lab.pb.h"

namespace rehearse::faults {

// Simulates the broken job and writes the folder, which is made when absent. kUsage when the folder has other files, or a
// lab that may not be replaced.
[[nodiscard]] Result<void> start_lab(const LabJob& job, const std::filesystem::path& folder,
                                     Overwrite overwrite, Reporter& reporter);

// What job.yaml and the files it names say. kMissingInput with what to do when the folder is no lab.
[[nodiscard]] Result<pb::Scenario> read_job(const std::filesystem::path& folder);
[[nodiscard]] Result<pb::LabState> read_state(const std::filesystem::path& folder);
[[nodiscard]] Result<void> write_state(const std::filesystem::path& folder,
                                       const pb::LabState& state);

// The files of a job by name, without evidence and texts.
[[nodiscard]] std::map<std::string, std::string> job_files(const pb::Scenario& written);

}  // namespace rehearse::faults
