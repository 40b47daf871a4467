// SPDX-License-Identifier: Apache-2.0
#include "validation/replay_checks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "traces/import/import.hpp"
#include "validation/replay_check.hpp"

namespace rehearse::validation {
namespace {

namespace fs = std::filesystem;

constexpr double kReplayTarget = .03;

// A recorded job: its files, and what is known of it before it is replayed.
struct RecordedJob {
  std::string name;  // path below the data folder
  fs::path files;
  traces::Trace trace;
  bool complete = false;  // every rank was recorded
};

bool is_trace(const fs::path& file) {
  const std::string name = file.filename().string();
  return name.ends_with(".json") || name.ends_with(".json.gz") || name.ends_with(".sqlite") ||
         name.ends_with(".rtrace");
}

std::vector<fs::path> sorted_entries(const fs::path& folder) {
  std::vector<fs::path> out;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(folder, none)) out.push_back(entry.path());
  std::sort(out.begin(), out.end());
  return out;
}

std::vector<fs::path> traces_below(const fs::path& folder) {
  std::vector<fs::path> out;
  std::error_code none;
  for (const auto& entry : fs::recursive_directory_iterator(folder, none)) {
    if (entry.is_regular_file(none) && is_trace(entry.path())) out.push_back(entry.path());
  }
  std::sort(out.begin(), out.end());
  return out;
}

// Traces of a folder that stand for one job, or each for one of its own: files of one job name ranks that differ and a
// number of ranks that is the same.
class Discovery {
 public:
  Discovery(const fs::path& data, Reporter& reporter) : data_(data), reporter_(reporter) {
    for (const char* kind : {"kineto", "nsys"}) {
      for (const fs::path& entry : sorted_entries(data / kind)) {
        std::error_code none;
        if (fs::is_directory(entry, none)) {
          look_into(entry);
        } else if (is_trace(entry)) {
          take(entry);
        }
      }
    }
  }

  std::vector<RecordedJob> jobs;
  std::map<std::string, std::vector<std::string>> left_out;  // by reason

 private:
  void look_into(const fs::path& folder) {
    const std::vector<fs::path> files = traces_below(folder);
    if (files.size() == 1) return take(files.front());
    auto whole = traces::import_files({folder}, {}, reporter_);
    if (whole && whole->trace.ranks.size() > 1 &&
        whole->trace.header.world_size() >= whole->trace.ranks.size()) {
      return keep(folder, std::move(whole->trace));
    }
    for (const fs::path& file : files) take(file);
  }

  void take(const fs::path& file) {
    auto imported = traces::import_files({file}, {}, reporter_);
    if (imported) {
      keep(file, std::move(imported->trace));
    } else {
      left_out[imported.error().what].push_back(name_of(file));
    }
  }

  void keep(const fs::path& files, traces::Trace trace) {
    const bool steps = std::any_of(trace.ranks.begin(), trace.ranks.end(),
                                   [](const auto& rank) { return !rank.steps.empty(); });
    const bool calls = std::any_of(trace.ranks.begin(), trace.ranks.end(),
                                   [](const auto& rank) { return !rank.ops.calls.empty(); });
    if (!steps || !calls) {
      left_out[steps ? "no collective was recorded" : "no step was recorded"].push_back(
          name_of(files));
      return;
    }
    const bool complete = trace.header.world_size() == trace.ranks.size();
    jobs.push_back({name_of(files), files, std::move(trace), complete});
  }

  [[nodiscard]] std::string name_of(const fs::path& path) const {
    return fs::relative(path, data_).string();
  }

  const fs::path& data_;
  Reporter& reporter_;
};

// Ranks that are missing are clones of those recorded; only the recorded ones are compared.
Result<ReplayReport> replay_of(const RecordedJob& job, Reporter& reporter) {
  std::set<uint32_t> recorded;
  for (const traces::RankTrace& rank : job.trace.ranks) recorded.insert(rank.rank);
  auto trace = std::make_shared<const traces::Trace>(job.trace);
  if (!job.complete) {
    traces::ImportOptions options;
    options.assume_symmetric = 0;
    RH_TRY(traces::Imported imported, traces::import_files({job.files}, options, reporter));
    trace = std::make_shared<const traces::Trace>(std::move(imported.trace));
  }
  RH_TRY(const sim::Scenario scenario, sim::scenario_of(std::move(trace), job.name));
  RH_TRY(ReplayReport report, check_replay(scenario, reporter));
  std::erase_if(report.steps, [&](const RankStep& step) { return !recorded.contains(step.rank); });
  return report;
}

void add_rows(const RecordedJob& job, const ReplayReport& report, Nanos RankStep::*predicted,
              Check& check) {
  for (const RankStep& step : report.steps) {
    if (step.measured <= 0) continue;
    check.rows.push_back({fmt::format("{}, rank {}, step {}", job.name, step.rank, step.step),
                          job.name, static_cast<double>(step.*predicted) * 1e-6,
                          static_cast<double>(step.measured) * 1e-6, "ms", job.name,
                          "rehearse validate replay $REHEARSE_DATA/" + job.name, 0, 0});
  }
}

// A replay that does not end predicts nothing: it is off by all of the step.
void add_failed(const RecordedJob& job, const Error& error, Check& check) {
  Nanos measured = 1;
  for (const traces::RankTrace& rank : job.trace.ranks) {
    for (const auto& step : rank.steps) measured = std::max(measured, step.end - step.start);
  }
  check.rows.push_back({fmt::format("{}: {}", job.name, error.what), job.name, 0,
                        static_cast<double>(measured) * 1e-6, "ms", job.name,
                        "rehearse validate replay $REHEARSE_DATA/" + job.name, 0, 0});
}

std::string listed(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : ", ") + name;
  return out;
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
  Discovery found(data, reporter);
  for (const RecordedJob& job : found.jobs) {
    const auto report = replay_of(job, reporter);
    if (!report) {
      Check& check = job.complete ? whole : partial;
      add_failed(job, report.error(), check);
      check.assumptions.push_back(
          fmt::format("counted as missed: {}: {}", job.name, report.error().what));
    } else if (!predicts_steps(*report)) {
      found
          .left_out["nothing says that the host waits for a stream, so the replay is the recording"]
          .push_back(job.name);
    } else {
      add_rows(job, *report, &RankStep::predicted, job.complete ? whole : partial);
      if (job.complete) add_rows(job, *report, &RankStep::naive, naive);
    }
  }
  std::vector<Check> out;
  for (Check* check : {&whole, &partial, &naive}) judge_median(*check);
  if (!naive.rows.empty()) {
    whole.assumptions.push_back(fmt::format(
        "a naive sum of kernels per stream is off by {:.1f} % (median) and {:.1f} % (9 of 10)",
        100 * naive.median_error, 100 * naive.p90_error));
  }
  for (const auto& [why, names] : found.left_out) {
    partial.assumptions.push_back(fmt::format("left out, {}: {}", why, listed(names)));
  }
  for (Check* check : {&whole, &partial}) {
    if (check->rows.empty()) {
      // What was left out, and why, is told all the more.
      Check none = skipped_check(check->id, check->what, "no such job in the data folder");
      none.assumptions = std::move(check->assumptions);
      *check = std::move(none);
    }
    out.push_back(std::move(*check));
  }
  return out;
}

}  // namespace rehearse::validation
