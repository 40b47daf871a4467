// SPDX-License-Identifier: Apache-2.0
#include "cli/validate_replay.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/units.hpp"
#include "cli/table.hpp"
#include "cli/validate_document.hpp"
#include "traces/import/import.hpp"
#include "validation/replay_check.hpp"

namespace rehearse::cli {
namespace {

using Json = nlohmann::ordered_json;
using validation::CallTimes;
using validation::Check;
using validation::RankStep;
using validation::ReplayReport;

constexpr double kStepTarget = 0.03;  // of the step time of each rank
constexpr Bytes kSmall = 4 << 20;

std::string caveat(const ReplayReport& report) {
  return report.largest <= kSmall
             ? "small messages: this shows order and skew between ranks, not bandwidth"
             : "";
}

constexpr const char* kNoWaits =
    "no host call of the trace is known to wait for a stream: step times and starts are the "
    "recording's own";

// How far the predicted ends (or starts) of calls are from the measured ones.
std::vector<double> call_errors(const ReplayReport& report, Nanos CallTimes::*measured,
                                Nanos CallTimes::*predicted) {
  std::vector<double> out;
  for (const CallTimes& call : report.calls) {
    out.push_back(std::abs(static_cast<double>(call.*predicted - call.*measured)));
  }
  std::sort(out.begin(), out.end());
  return out;
}

Check figure(const char* id, const char* what, const std::vector<double>& errors) {
  Check check;
  check.id = id;
  check.what = what;
  check.n = errors.size();
  check.value = validation::quantile(errors, .5);
  check.judged = false;
  check.skipped = errors.empty();
  if (check.skipped) check.why = "the trace has none";
  return check;
}

// The worst step of any rank is judged: a job is as slow as its slowest rank.
Check step_check(const ReplayReport& report, const std::vector<double>& errors) {
  Check check = figure("replay-step", "step time of each rank, replayed as recorded", errors);
  check.metric = "largest error";
  check.value = errors.empty() ? 0 : errors.back();
  check.target = kStepTarget;
  check.judged = true;
  check.met = !errors.empty() && errors.back() <= kStepTarget;
  if (!predicts_steps(report)) {
    check.skipped = true;
    check.why = kNoWaits;
  }
  return check;
}

Json document(const ReplayReport& report) {
  Json steps = Json::array(), calls = Json::array();
  for (const RankStep& one : report.steps) {
    steps.push_back({{"rank", one.rank},
                     {"step", one.step},
                     {"measured_ns", one.measured},
                     {"predicted_ns", one.predicted},
                     {"naive_ns", one.naive},
                     {"host_wait_ns", one.waited}});
  }
  for (const CallTimes& call : report.calls) {
    calls.push_back({{"communicator", call.communicator},
                     {"sequence", call.sequence},
                     {"operation", call.collective},
                     {"rank", call.rank},
                     {"bytes", call.bytes},
                     {"measured_start_ns", call.measured_start},
                     {"measured_end_ns", call.measured_end},
                     {"predicted_start_ns", call.predicted_start},
                     {"predicted_end_ns", call.predicted_end}});
  }
  const std::vector<double> errors = step_errors(report, &RankStep::predicted);
  Json checks = Json::array({check_json(step_check(report, errors), errors)});
  const auto beside = [&](const char* id, const char* what, const std::vector<double>& others) {
    checks.push_back(check_json(figure(id, what, others), others));
  };
  beside("replay-step-naive", "the same as a sum of kernels per stream",
         step_errors(report, &RankStep::naive));
  const auto seconds = [](std::vector<double> times) {
    for (double& time : times) time *= 1e-9;
    return times;
  };
  beside("replay-call-start", "start of each call on each rank, in seconds",
         seconds(call_errors(report, &CallTimes::measured_start, &CallTimes::predicted_start)));
  beside("replay-call-end", "end of each call on each rank, in seconds",
         seconds(call_errors(report, &CallTimes::measured_end, &CallTimes::predicted_end)));
  return validate_document({{"platform", report.platform}, {"caveat", caveat(report)}},
                           std::move(checks), {{"steps", steps}, {"calls", calls}});
}

std::string in_percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

std::string step_table(const ReplayReport& report, const Terminal& terminal) {
  Table table({{"rank", Align::kRight},
               {"step", Align::kRight},
               {"measured", Align::kRight},
               {"replayed", Align::kRight},
               {"error", Align::kRight},
               {"host waits", Align::kRight},
               {"naive sum", Align::kRight},
               {"error", Align::kRight}});
  for (const RankStep& step : report.steps) {
    const auto error = [&](Nanos time) {
      return fmt::format("{:+.1f} %",
                         100 * (static_cast<double>(time) /
                                    static_cast<double>(std::max<Nanos>(1, step.measured)) -
                                1));
    };
    table.add({fmt::format("{}", step.rank), fmt::format("{}", step.step),
               format_duration(step.measured), format_duration(step.predicted),
               error(step.predicted), format_duration(step.waited), format_duration(step.naive),
               error(step.naive)});
  }
  return table.text(terminal);
}

// One row per call: how far apart its members start and end.
std::string call_table(const ReplayReport& report, const Terminal& terminal) {
  Table table({{"call"},
               {"sequence", Align::kRight},
               {"bytes", Align::kRight},
               {"starts apart", Align::kRight},
               {"replayed", Align::kRight},
               {"ended at", Align::kRight},
               {"replayed", Align::kRight}});
  for (size_t i = 0; i < report.calls.size();) {
    const CallTimes& first = report.calls[i];
    Nanos low = INT64_MAX, high = INT64_MIN, is_low = INT64_MAX, is_high = INT64_MIN;
    Nanos end = 0, is_end = 0;
    size_t j = i;
    for (; j < report.calls.size() && report.calls[j].communicator == first.communicator &&
           report.calls[j].sequence == first.sequence &&
           report.calls[j].collective == first.collective;
         ++j) {
      const CallTimes& call = report.calls[j];
      low = std::min(low, call.measured_start);
      high = std::max(high, call.measured_start);
      is_low = std::min(is_low, call.predicted_start);
      is_high = std::max(is_high, call.predicted_start);
      end = std::max(end, call.measured_end);
      is_end = std::max(is_end, call.predicted_end);
    }
    table.add({first.collective, fmt::format("{}", first.sequence), format_bytes(first.bytes),
               format_duration(high - low), format_duration(is_high - is_low), format_duration(end),
               format_duration(is_end)});
    i = j;
  }
  return table.text(terminal);
}

std::string text(const ReplayReport& report, const Terminal& terminal) {
  const std::vector<double> errors = step_errors(report, &RankStep::predicted);
  const std::vector<double> naive = step_errors(report, &RankStep::naive);
  const double most = errors.empty() ? 0 : errors.back();
  std::string out = fmt::format(
      "step time of {} ranks and steps: error at most {}, median {} (target {}: {}); a naive sum "
      "of "
      "kernels is off by up to {}\n(on {}, largest message {}{}{})\n\n",
      errors.size(), in_percent(most), in_percent(validation::quantile(errors, 0.5)),
      in_percent(kStepTarget),
      !predicts_steps(report) ? "not tested"
      : most <= kStepTarget   ? "met"
                              : "missed",
      in_percent(naive.empty() ? 0 : naive.back()), report.platform, format_bytes(report.largest),
      caveat(report).empty() ? "" : "; ", caveat(report));
  if (!predicts_steps(report)) out += fmt::format("{}\n\n", kNoWaits);
  out += step_table(report, terminal);
  if (!report.calls.empty()) out += "\n" + call_table(report, terminal);
  return out;
}

}  // namespace

Result<int> validate_replay(Context& context) {
  std::vector<std::filesystem::path> files(context.inputs().begin() + 1, context.inputs().end());
  if (files.empty()) {
    return fail(Code::kUsage, "TRACE is missing: the files or the folder of a recorded job",
                "validate replay", "rehearse validate --help");
  }
  RH_TRY(traces::Imported imported, traces::import_files(files, {}, context.reporter()));
  context.show(imported.findings);
  RH_TRY(const sim::Scenario scenario,
         sim::scenario_of(std::make_shared<const traces::Trace>(std::move(imported.trace)),
                          files.front().string()));
  auto replayed = validation::check_replay(scenario, context.reporter());
  if (!replayed) {
    Error error = std::move(replayed).error();
    if (error.where.empty()) error.where = files.front().string();
    return tl::unexpected(std::move(error));
  }
  const ReplayReport report = std::move(*replayed);
  const std::vector<double> errors = step_errors(report, &RankStep::predicted);
  const bool met = !predicts_steps(report) || (!errors.empty() && errors.back() <= kStepTarget);
  auto done = context.json() ? context.print(document(report))
                             : context.print(std::string_view(text(report, context.terminal())));
  return exit_code(std::move(done), met ? 0 : static_cast<int>(Code::kFinding));
}

}  // namespace rehearse::cli
