// SPDX-License-Identifier: Apache-2.0
#include "validation/straggler_checks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "traces/import/import.hpp"
#include "validation/straggler_replay.hpp"

namespace rehearse::validation {
namespace {

namespace fs = std::filesystem;

constexpr double kStragglerTarget = .03;

struct StudyJob {
  std::string name;
  fs::path trace, meta, result;
};

std::vector<StudyJob> study_jobs(const fs::path& folder) {
  std::vector<StudyJob> out;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(folder, none)) {
    if (!entry.is_directory()) continue;
    StudyJob job{entry.path().filename().string(), {}, {}, {}};
    for (const auto& file : fs::directory_iterator(entry.path(), none)) {
      const std::string name = file.path().filename().string();
      if (name.starts_with("trace-")) job.trace = file.path();
      if (name.starts_with("meta-")) job.meta = file.path();
      if (name.starts_with("result-")) job.result = file.path();
    }
    if (!job.trace.empty()) out.push_back(std::move(job));
  }
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return out;
}

Result<std::vector<RecordedStep>> steps_of(const StudyJob& job, Reporter& reporter) {
  std::vector<fs::path> files = {job.trace};
  if (!job.meta.empty()) files.push_back(job.meta);
  traces::ImportOptions options;
  options.clocks = traces::ClockAlignment::kAsRecorded;
  RH_TRY(const traces::Imported imported, traces::import_files(files, options, reporter));
  return recorded_steps(imported.trace);
}

double seconds(Nanos time) { return static_cast<double>(time) * 1e-9; }

// Every other step, beginning with the first or the second.
std::vector<RecordedStep> every_other(const std::vector<RecordedStep>& steps, size_t first) {
  std::vector<RecordedStep> out;
  for (size_t s = first; s < steps.size(); s += 2) out.push_back(steps[s]);
  return out;
}

Result<void> compare(const StudyJob& job, Reporter& reporter, Check& held_out, Check& what_if) {
  RH_TRY(const auto steps, steps_of(job, reporter));
  const StepCosts costs = costs_of(every_other(steps, 0));
  const std::string source = "straggler/" + job.name + "/" + job.trace.filename().string();
  for (size_t s = 1; s < steps.size(); s += 2) {
    RH_TRY(const Nanos predicted, replayed(steps[s], costs, HostCosts::kCounted, nullptr));
    held_out.rows.push_back({fmt::format("{}, step {}", job.name, s), job.name, seconds(predicted),
                             seconds(steps[s].measured()), "s", source,
                             "rehearse validate --only stragglers --rows", 0, 0});
  }
  if (job.result.empty()) return {};
  std::ifstream file(job.result);
  const auto result = nlohmann::json::parse(file, nullptr, false);
  if (result.is_discarded() || !result.contains("blocking_slowdown") ||
      !result["blocking_slowdown"].is_number()) {
    return fail(Code::kBadInput, "it states no blocking_slowdown", job.result.string(), "");
  }
  const auto even_work = mean_work(steps);
  double recorded = 0, even = 0;
  for (const RecordedStep& step : steps) {
    RH_TRY(const Nanos as_is, replayed(step, costs, HostCosts::kNone, nullptr));
    RH_TRY(const Nanos without, replayed(step, costs, HostCosts::kNone, &even_work));
    recorded += seconds(as_is);
    even += seconds(without);
  }
  what_if.rows.push_back({fmt::format("{}: slowdown by stragglers", job.name), job.name,
                          even > 0 ? recorded / even : 0, result["blocking_slowdown"].get<double>(),
                          "", "straggler/" + job.name + "/" + job.result.filename().string(),
                          "rehearse validate --only stragglers --rows", 0, 0, "compute"});
  return {};
}

}  // namespace

std::vector<Check> straggler_checks(const fs::path& data, Reporter& reporter) {
  Check held_out, what_if;
  held_out.id = "straggler-steps";
  held_out.what =
      "step time of recorded jobs with stragglers; transfers and host costs from every other step";
  what_if.id = "straggler-slowdown";
  what_if.what = "slowdown by stragglers (every worker made alike), against the authors' replay";
  held_out.target = what_if.target = kStragglerTarget;
  for (const StudyJob& job : study_jobs(data / "straggler")) {
    if (auto done = compare(job, reporter, held_out, what_if); !done) {
      held_out.assumptions.push_back(
          fmt::format("{} is left out: {}", job.name, done.error().what));
    }
  }
  judge_median(held_out);
  judge_median(what_if);
  // Few jobs: every one has to hold.
  for (const CheckRow& row : what_if.rows) {
    what_if.met = what_if.met && std::abs(row.error()) <= kStragglerTarget;
  }
  return {held_out, what_if};
}

}  // namespace rehearse::validation
