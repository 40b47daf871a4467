// SPDX-License-Identifier: Apache-2.0
// A study as a Slurm job array: the script, and following it until every point has a row. Slurm's own
// commands do the work (sbatch, squeue); no shell is involved in calling them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/reporter.hpp"

namespace rehearse::cli {

struct ArrayJob {
  std::string program;  // absolute path of rehearse
  std::string study;    // study file (absolute) or name of a shipped one
  std::filesystem::path folder;
  uint32_t tasks = 1;  // shards
  std::string partition;
  uint32_t at_once = 0;                   // tasks that run at a time; 0: as many as fit
  unsigned jobs = 1;                      // points at a time in a task
  std::vector<std::string> options = {};  // of every task, as the command line writes them
};

enum class Tasks { kAtWork, kGone };  // of an array

// The batch script.
[[nodiscard]] std::string batch_script(const ArrayJob& job);

// How many points have no row.
using Missing = std::function<Result<uint64_t>(Tasks tasks)>;

// Writes the script beside the results, submits it and waits until `missing` says 0 or the array has left the
// queue; an array that left points behind (a node was lost) is submitted again, `again` times at most.
// kMissingInput when there is no sbatch here.
[[nodiscard]] Result<void> run_array(const ArrayJob& job, uint64_t total, uint32_t again,
                                     const Missing& missing, Reporter& reporter);

}  // namespace rehearse::cli
