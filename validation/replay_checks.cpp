// SPDX-License-Identifier: Apache-2.0
#include "validation/replay_checks.hpp"

#include <fmt/format.h>

#include <set>

#include "base/document.hpp"
#include "base/install.hpp"
#include "traces/import/import.hpp"
#include "validation/proto/replay_jobs.pb.h"
#include "validation/replay_check.hpp"

namespace rehearse::validation {
namespace {

namespace fs = std::filesystem;

constexpr double kReplayTarget = .03;

// Ranks that are missing are clones of those recorded; only the recorded ones are compared.
Result<ReplayReport> replay_of(const pb::ReplayJob& job, const fs::path& data, Reporter& reporter) {
  std::vector<fs::path> files;
  for (const std::string& file : job.files()) files.push_back(data / file);
  traces::ImportOptions options;
  RH_TRY(traces::Imported imported, traces::import_files(files, options, reporter));
  std::set<uint32_t> recorded;
  for (const traces::RankTrace& rank : imported.trace.ranks) recorded.insert(rank.rank);
  if (!job.complete()) {
    options.assume_symmetric = 0;
    RH_TRY(imported, traces::import_files(files, options, reporter));
  }
  RH_TRY(
      const sim::Scenario scenario,
      sim::scenario_of(std::make_shared<const traces::Trace>(std::move(imported.trace)), job.id()));
  RH_TRY(ReplayReport report, check_replay(scenario, reporter));
  std::erase_if(report.steps, [&](const RankStep& step) { return !recorded.contains(step.rank); });
  return report;
}

std::string command_of(const pb::ReplayJob& job) {
  std::string out = "rehearse validate replay";
  for (const std::string& file : job.files()) out += " $REHEARSE_DATA/" + file;
  return out;
}

void add_rows(const pb::ReplayJob& job, const ReplayReport& report, Nanos RankStep::*predicted,
              Check& check) {
  for (const RankStep& step : report.steps) {
    if (step.measured <= 0) continue;
    check.rows.push_back({fmt::format("{}, rank {}, step {}", job.what(), step.rank, step.step),
                          job.id(), static_cast<double>(step.*predicted) * 1e-6,
                          static_cast<double>(step.measured) * 1e-6, "ms", job.files(0),
                          command_of(job), 0, 0});
  }
}

}  // namespace

std::vector<Check> replay_checks(const fs::path& data, Reporter& reporter) {
  Check whole, partial;
  whole.id = "replay-complete";
  whole.what =
      "step time of every rank of a job recorded on all ranks, NCCL's recorded times deleted";
  partial.id = "replay-partial";
  partial.what = "step time of recorded ranks of jobs whose other ranks are missing";
  whole.target = partial.target = kReplayTarget;
  Check naive = whole;
  pb::ReplayJobs jobs;
  const auto file = shipped("validation/figures/replay_jobs.yaml");
  if (!file) return {skipped_check(whole.id, whole.what, file.error().what)};
  if (auto read = read_document_file(file->string(), jobs); !read) {
    return {skipped_check(whole.id, whole.what, read.error().what)};
  }
  for (const pb::ReplayJob& job : jobs.jobs()) {
    Check& check = job.complete() ? whole : partial;
    const auto report = replay_of(job, data, reporter);
    if (!report) {
      check.assumptions.push_back(fmt::format("{} is left out: {}", job.id(), report.error().what));
      continue;
    }
    if (!predicts_steps(*report)) {
      check.assumptions.push_back(fmt::format(
          "{} is left out: nothing in it says that the host waits for a stream, so its replay is "
          "the recording",
          job.id()));
      continue;
    }
    add_rows(job, *report, &RankStep::predicted, check);
    if (job.complete()) add_rows(job, *report, &RankStep::naive, naive);
  }
  judge_median(whole);
  judge_median(partial);
  judge_median(naive);
  whole.assumptions.push_back(fmt::format(
      "a naive sum of kernels per stream is off by {:.1f} % (median) and {:.1f} % (9 of "
      "10)",
      100 * naive.median_error, 100 * naive.p90_error));
  return {whole, partial};
}

}  // namespace rehearse::validation
