// SPDX-License-Identifier: Apache-2.0
// What is left of a run when nobody profiled it: what each rank printed, NCCL's log in it, and flight recorder dumps. The part
// of an outcome that they tell is compared like any other (changes.hpp): of a simulated run the same files are written and
// read, so that both sides have gone through the same eye.
//
//   told       transports, channels and adapters of communicators, GPUDirect by node, warnings, errors that ranks
//              printed, calls that were put into queues and never ended, variables that NCCL read, how many steps the
//              training script told of (step_lines.hpp), ranks without a word where others have some
//   not told   where steps spend their time, links, memory, results, all other configuration
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "faults/diagnose/printed.hpp"
#include "faults/diagnose/step_lines.hpp"
#include "faults/world.hpp"
#include "sim/proto/outcome.pb.h"
#include "sim/scenario/scenario.hpp"
#include "traces/proto/evidence.pb.h"

namespace rehearse::faults {

struct JobLogs {
  struct OfRank {
    std::optional<uint32_t> rank;  // from the name of the file
    pb::NcclLog log;
  };
  std::vector<OfRank> nccl;
  std::vector<PrintedError> printed;
  std::vector<pb::FlightRecorder> recorders;
  struct StepsOfRank {
    std::optional<uint32_t> rank;
    ToldSteps told;
  };
  std::vector<StepsOfRank> steps;  // of files that hold output of the program
  std::set<uint32_t> ranks;        // that left a file, were it empty; empty: names do not tell
  std::set<uint32_t> output;       // of them: whose output is there, were it empty
  std::set<uint32_t> spoke;        // of them: with a word in it

  // No word that is known: a text of other words is no evidence.
  [[nodiscard]] bool empty() const { return no_trouble() && !tells_steps(); }
  // Nothing but steps that a script told of.
  [[nodiscard]] bool only_steps() const { return no_trouble() && tells_steps(); }

 private:
  [[nodiscard]] bool no_trouble() const {
    return nccl.empty() && printed.empty() && recorders.empty();
  }
  [[nodiscard]] bool tells_steps() const {
    return std::any_of(steps.begin(), steps.end(),
                       [](const StepsOfRank& one) { return one.told.lines > 0; });
  }
};

// Ranks that a stop leaves without a process: they dump nothing.
[[nodiscard]] std::set<uint32_t> ranks_gone(const sim::Scenario& scenario);

// Files by name that the ranks of a simulated run leave behind: rank-3.log with NCCL's lines, on rank 0 those of the training
// script, and the errors it printed, nccl_trace_rank_3.json. Ranks that are gone dump nothing; of a process that was never
// started its launcher leaves an empty file.
using LogFiles = std::map<std::string, std::string>;
[[nodiscard]] Result<LogFiles> log_files(const sim::Scenario& scenario, const pb::Outcome& outcome);

// What the program of a rank printed, errors and steps; false: neither. `text` is its output, were it empty.
[[nodiscard]] bool add_printed(std::string_view text, std::optional<uint32_t> rank, JobLogs& logs);
// One more file, whatever it is; false: it tells nothing. `name` without folder.
[[nodiscard]] bool add_log(std::string_view bytes, const std::string& name, JobLogs& logs);
[[nodiscard]] JobLogs read_logs(const LogFiles& files);

// What the logs tell of the run. `job` is the expanded scenario as it should be (where ranks are).
[[nodiscard]] pb::Outcome outcome_in(const JobLogs& logs, const pb::Scenario& job);
// The same of a run and the healthy run of the job: what both tell alike is taken out of `run`, transports that only the
// healthy one has are those offered, and a run with fewer steps than that one did not end.
void keep_what_differs(const pb::Outcome& healthy, pb::Outcome& run);

// The job's launch with the variables that NCCL says it read; nothing when no process came to say so.
[[nodiscard]] std::optional<pb::Launch> launch_in(const JobLogs& logs, const pb::Scenario& job);
// Whether that says anything that the job as it should be does not have.
[[nodiscard]] bool reads_other_settings(const pb::Launch& seen, const pb::Launch& healthy);

// Runs as their logs show them, against those of `healthy` (which outcome_in made), with the symptom of the whole run
// against steps of `step`.
[[nodiscard]] World seen_in_logs(const World& world, const pb::Scenario& job,
                                 const pb::Outcome& healthy, const pb::StepTimes& step);

}  // namespace rehearse::faults
