// SPDX-License-Identifier: Apache-2.0
#include "cli/study/row.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.hpp"
#include "base/units.hpp"
#include "cli/outcome_text.hpp"

namespace rehearse::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kLowKey = "step_time_low_ns";
constexpr const char* kHighKey = "step_time_high_ns";
constexpr const char* kNoRangeKey = "no_range";

// The mean over ranks of one part of the breakdown.
double mean_of(const pb::Outcome& outcome, int64_t (pb::RankBreakdown::*part)() const) {
  double sum = 0;
  for (const pb::RankBreakdown& rank : outcome.breakdown()) {
    sum += static_cast<double>((rank.*part)());
  }
  return outcome.breakdown().empty() ? 0 : sum / outcome.breakdown_size();
}

// A bound in the metric's unit.
Result<double> bound_of(const std::string& metric, const std::string& text,
                        const std::string& where) {
  if (metric.ends_with("_ns")) {
    auto value = parse_duration(text);
    if (value) return static_cast<double>(*value);
    return bad_input(value.error().what, where, value.error().fix);
  }
  if (metric.ends_with("_bytes")) {
    auto value = parse_bytes(text);
    if (value) return static_cast<double>(*value);
    return bad_input(value.error().what, where, value.error().fix);
  }
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (end == text.c_str() || *end != 0) {
    return bad_input(fmt::format("{} is no number", in_quotes(text)), where, "a plain number");
  }
  return value;
}

Result<void> known_metric(const std::string& metric, const std::string& where) {
  if (std::ranges::find(metric_names(), metric) != metric_names().end()) return {};
  const std::string meant = nearest(metric, metric_names());
  return bad_input(fmt::format("{} is no metric", in_quotes(metric)), where,
                   meant.empty() ? "one of " + join_words(metric_names())
                                 : fmt::format("did you mean {}?", meant));
}

}  // namespace

const std::vector<std::string>& metric_names() {
  static const std::vector<std::string> names = {"step_time_ns",
                                                 "step_p99_ns",
                                                 "compute_ns",
                                                 "exposed_communication_ns",
                                                 "wait_ns",
                                                 "memory_peak_bytes",
                                                 "gpus",
                                                 "gpu_time_ns",
                                                 "memory_headroom_bytes",
                                                 "useful_step_ns"};
  return names;
}

Row row_of(const pb::Outcome& outcome) {
  Row row;
  row.verdict = verdict_name(outcome.verdict());
  row.symptom = outcome.symptom().id();
  double peak = 0, headroom = 0;
  for (int r = 0; r < outcome.memory().ranks_size(); ++r) {
    const pb::RankMemory& rank = outcome.memory().ranks(r);
    peak = std::max(peak, static_cast<double>(rank.peak()));
    const auto left = static_cast<double>(rank.capacity() - rank.peak());
    headroom = r == 0 ? left : std::min(headroom, left);
  }
  const auto step = static_cast<double>(outcome.step_time_ns().mean());
  row.figures = {
      step,
      static_cast<double>(outcome.step_time_ns().p99()),
      mean_of(outcome, &pb::RankBreakdown::compute),
      mean_of(outcome, &pb::RankBreakdown::communication),
      mean_of(outcome, &pb::RankBreakdown::wait),
      peak,
      static_cast<double>(outcome.ranks()),
      step * outcome.ranks(),
      headroom,
      outcome.has_goodput() ? static_cast<double>(outcome.goodput().useful_step_ns()) : step};
  for (double& figure : row.figures) figure = std::round(figure);
  if (outcome.has_step_time_band_ns()) {
    row.range = {outcome.step_time_band_ns().low(), outcome.step_time_band_ns().high()};
  }
  return row;
}

Row failed_row(const Error& error) {
  Row row;
  row.failed = true;
  row.reason = error.message();
  return row;
}

Json row_json(const Row& row) {
  if (row.failed) return Json{{"failed", row.reason}};
  Json out{{"verdict", row.verdict}, {"symptom", row.symptom}};
  for (size_t i = 0; i < row.figures.size(); ++i) {
    out[metric_names()[i]] = static_cast<int64_t>(row.figures[i]);
  }
  if (row.range) {
    out[kLowKey] = row.range->low;
    out[kHighKey] = row.range->high;
  }
  if (!row.no_range.empty()) out[kNoRangeKey] = row.no_range;
  return out;
}

Result<Row> parse_row(std::string_view text, const std::string& where) {
  const Json json = Json::parse(text, nullptr, false);
  const auto wrong = [&] {
    return bad_input("not the result of a point", where, "remove the file; it is computed again");
  };
  if (!json.is_object()) return wrong();
  Row row;
  if (const auto failed = json.find("failed"); failed != json.end()) {
    if (!failed->is_string()) return wrong();
    row.failed = true;
    row.reason = failed->get<std::string>();
    return row;
  }
  for (const char* key : {"verdict", "symptom"}) {
    if (!json.contains(key) || !json[key].is_string()) return wrong();
  }
  row.verdict = json["verdict"].get<std::string>();
  row.symptom = json["symptom"].get<std::string>();
  for (const std::string& name : metric_names()) {
    if (!json.contains(name) || !json[name].is_number_integer()) return wrong();
    row.figures.push_back(static_cast<double>(json[name].get<int64_t>()));
  }
  if (json.contains(kLowKey) && json.contains(kHighKey)) {
    if (!json[kLowKey].is_number_integer() || !json[kHighKey].is_number_integer()) return wrong();
    row.range = {json[kLowKey].get<int64_t>(), json[kHighKey].get<int64_t>()};
  }
  if (json.contains(kNoRangeKey)) {
    if (!json[kNoRangeKey].is_string()) return wrong();
    row.no_range = json[kNoRangeKey].get<std::string>();
  }
  return row;
}

std::optional<double> figure(const Row& row, const std::string& metric) {
  const auto at = std::ranges::find(metric_names(), metric);
  if (row.failed || at == metric_names().end()) return std::nullopt;
  return row.figures[static_cast<size_t>(at - metric_names().begin())];
}

Result<Goal> Goal::of(const pb::Study& study, const std::string& where) {
  Goal goal;
  const pb::Objective& wanted = study.objective();
  if (!wanted.minimise().empty() && !wanted.maximise().empty()) {
    return bad_input("the objective minimises and maximises", where + ": objective",
                     "leave out one of them");
  }
  goal.maximise_ = !wanted.maximise().empty();
  const std::string& metric = goal.maximise_ ? wanted.maximise() : wanted.minimise();
  if (!metric.empty()) goal.metric_ = metric;
  if (auto known = known_metric(goal.metric_, where + ": objective"); !known) {
    return tl::unexpected(std::move(known).error());
  }
  for (int i = 0; i < study.constraints_size(); ++i) {
    const pb::Constraint& constraint = study.constraints(i);
    const std::string place = fmt::format("{}: constraints[{}]", where, i);
    Bound bound{constraint.metric(), constraint.is(), {}, {}};
    const bool is_text = constraint.metric() == "verdict" || constraint.metric() == "symptom";
    if (is_text != !constraint.is().empty() ||
        (!is_text && !constraint.has_at_most() && !constraint.has_at_least())) {
      return bad_input("the constraint says nothing that can be checked", place,
                       "at_most or at_least with a figure; `is` with verdict or symptom");
    }
    if (!is_text) {
      if (auto known = known_metric(constraint.metric(), place); !known) {
        return tl::unexpected(std::move(known).error());
      }
    }
    if (constraint.has_at_most()) {
      RH_TRY(bound.at_most, bound_of(constraint.metric(), constraint.at_most(), place));
    }
    if (constraint.has_at_least()) {
      RH_TRY(bound.at_least, bound_of(constraint.metric(), constraint.at_least(), place));
    }
    goal.bounds_.push_back(std::move(bound));
  }
  return goal;
}

bool Goal::feasible(const Row& row) const {
  if (row.failed || row.verdict != "completed") return false;
  return std::ranges::all_of(bounds_, [&](const Bound& bound) {
    if (bound.metric == "verdict") return row.verdict == bound.text;
    if (bound.metric == "symptom") return row.symptom == bound.text;
    const double value = *figure(row, bound.metric);
    return (!bound.at_most || value <= *bound.at_most) &&
           (!bound.at_least || value >= *bound.at_least);
  });
}

std::optional<double> Goal::cost(const Row& row) const {
  if (!feasible(row)) return std::nullopt;
  const double value = *figure(row, metric_);
  return maximise_ ? -value : value;
}

}  // namespace rehearse::cli
