// SPDX-License-Identifier: Apache-2.0
#include "cli/study/summary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/units.hpp"
#include "cli/study/effects.hpp"
#include "cli/table.hpp"

namespace rehearse::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string name_of(const StudyAxis& axis) {
  return fmt::format("{}", fmt::join(axis.columns, "+"));
}

std::string label_of(const StudyAxis& axis, size_t value) {
  return fmt::format("{}", fmt::join(axis.values[value].labels, ","));
}

// Columns whose axis has more than one value: the others tell nothing about differences.
std::vector<size_t> varying(const Plan& plan) {
  std::vector<size_t> out;
  size_t column = 0;
  for (const StudyAxis& axis : plan.axes) {
    for (size_t c = 0; c < axis.columns.size(); ++c, ++column) {
      if (axis.values.size() > 1) out.push_back(column);
    }
  }
  return out;
}

std::string best_table(const Summary& s, const std::vector<size_t>& order,
                       const Terminal& terminal) {
  std::vector<Column> columns = {{"best", Align::kRight}, {"point", Align::kRight}};
  const std::vector<size_t> shown = varying(s.plan);
  const std::vector<std::string> names = s.plan.columns();
  for (const size_t column : shown) columns.push_back({names[column]});
  columns.push_back({s.goal.metric(), Align::kRight});
  const bool ranges =
      std::ranges::any_of(s.rows, [](const auto& item) { return item.second.range.has_value(); });
  if (ranges) columns.push_back({"step time, 9 of 10 draws", Align::kRight});
  columns.push_back({"against the best", Align::kRight});
  columns.push_back({"memory", Align::kRight});
  columns.push_back({"symptom"});
  Table table(columns);
  const double best = *figure(s.rows.at(order.front()), s.goal.metric());
  for (size_t i = 0; i < std::min(order.size(), s.top); ++i) {
    const Row& row = s.rows.at(order[i]);
    const double value = *figure(row, s.goal.metric());
    std::vector<std::string> cells = {std::to_string(i + 1), std::to_string(order[i])};
    const std::vector<std::string> labels = s.plan.labels(order[i]);
    for (const size_t column : shown) cells.push_back(labels[column]);
    cells.push_back(shown_figure(s.goal.metric(), value));
    if (ranges) {
      cells.push_back(row.range ? fmt::format("{} to {}", format_duration(row.range->low),
                                              format_duration(row.range->high))
                                : "");
    }
    cells.push_back(i == 0 || best == 0 ? "" : fmt::format("{:+.1f} %", 100 * (value / best - 1)));
    cells.push_back(shown_figure("memory_peak_bytes", *figure(row, "memory_peak_bytes")));
    cells.push_back(row.symptom);
    table.add(std::move(cells));
  }
  return table.text(terminal);
}

std::string effects_table(const Summary& s, const Terminal& terminal) {
  Table table({{"what matters"},
               {"share", Align::kRight},
               {"lowest at"},
               {"mean", Align::kRight},
               {"highest at"},
               {"mean", Align::kRight}});
  for (const Effect& effect : effects_of(s.plan, s.rows, s.goal)) {
    const StudyAxis& axis = s.plan.axes[effect.axes.front()];
    if (axis.values.size() == 1) continue;
    if (effect.axes.size() == 2) {
      table.add({name_of(axis) + " with " + name_of(s.plan.axes[effect.axes[1]]),
                 fmt::format("{:.1f} %", 100 * effect.share)});
      continue;
    }
    size_t low = effect.means.size(), high = low;
    for (size_t v = 0; v < effect.means.size(); ++v) {
      if (std::isnan(effect.means[v])) continue;
      if (low == effect.means.size() || effect.means[v] < effect.means[low]) low = v;
      if (high == effect.means.size() || effect.means[v] > effect.means[high]) high = v;
    }
    table.add({name_of(axis), fmt::format("{:.1f} %", 100 * effect.share), label_of(axis, low),
               shown_figure(s.goal.metric(), effect.means[low]), label_of(axis, high),
               shown_figure(s.goal.metric(), effect.means[high])});
  }
  std::string out = table.text(terminal);
  if (!is_full_product(s.plan, s.rows, s.goal)) {
    out += "shares overlap: not every combination of values is a feasible point\n";
  }
  return out;
}

std::string front_table(const Summary& s, const std::vector<size_t>& front,
                        const Terminal& terminal) {
  Table table({{"GPUs", Align::kRight},
               {"step time", Align::kRight},
               {"GPU time per step", Align::kRight},
               {"point"}});
  for (const size_t point : front) {
    const Row& row = s.rows.at(point);
    table.add({shown_figure("gpus", *figure(row, "gpus")),
               shown_figure("step_time_ns", *figure(row, "step_time_ns")),
               shown_figure("gpu_time_ns", *figure(row, "gpu_time_ns")), described(s.plan, point)});
  }
  return table.text(terminal);
}

// Reasons of failed rows, or why rows have no range, and how often each occurs, commonest first.
std::vector<std::pair<uint64_t, std::string>> reasons_of(const std::map<size_t, Row>& rows,
                                                         std::string Row::*reason) {
  std::map<std::string, uint64_t> counts;
  for (const auto& [_, row] : rows) {
    if (!(row.*reason).empty()) ++counts[row.*reason];
  }
  std::vector<std::pair<uint64_t, std::string>> out;
  out.reserve(counts.size());
  for (const auto& [text, count] : counts) out.emplace_back(count, text);
  std::ranges::stable_sort(out, std::greater<>(), [](const auto& item) { return item.first; });
  return out;
}

Json point_json(const Summary& s, size_t point) {
  Json axes = Json::object();
  const std::vector<std::string> columns = s.plan.columns(), labels = s.plan.labels(point);
  for (size_t c = 0; c < columns.size(); ++c) axes[columns[c]] = labels[c];
  Json out{{"point", point}, {"axes", axes}};
  out.update(row_json(s.rows.at(point)));
  return out;
}

}  // namespace

std::string shown_figure(const std::string& metric, double value) {
  if (metric.ends_with("_ns")) return format_duration(std::llround(value));
  if (metric.ends_with("_bytes")) return format_bytes(std::llround(value));
  return fmt::format("{:.6g}", value);
}

std::string described(const Plan& plan, size_t point) {
  const std::vector<std::string> columns = plan.columns(), labels = plan.labels(point);
  std::string out;
  for (const size_t c : varying(plan)) {
    out += fmt::format("{}{}={}", out.empty() ? "" : ", ", columns[c], labels[c]);
  }
  return out;
}

std::string summary_text(const Summary& s, const Terminal& terminal) {
  const std::vector<size_t> order = ranked(s.rows, s.goal);
  const auto reasons = reasons_of(s.rows, &Row::reason);
  uint64_t failed = 0;
  for (const auto& [count, _] : reasons) failed += count;
  std::string out =
      fmt::format("{}: {} of {} points, {} feasible, {} failed; {}\n", s.plan.study.name(),
                  s.rows.size(), s.plan.points.size(), order.size(), failed, s.folder);
  if (!order.empty() && s.top > 0) out += "\n" + best_table(s, order, terminal);
  if (!order.empty()) out += "\n" + effects_table(s, terminal);
  const auto front = pareto_front(s.rows, s.goal, "gpus", "step_time_ns");
  if (front.size() > 1)
    out += "\nno point has fewer GPUs and a shorter step\n" + front_table(s, front, terminal);
  for (const auto& [count, reason] : reasons) {
    out += fmt::format("\n{} failed: {}", count, reason);
  }
  if (!reasons.empty()) out += "\n";
  for (const auto& [count, reason] : reasons_of(s.rows, &Row::no_range)) {
    out += fmt::format("\n{} without a range: {}\n", count, reason);
  }
  return out;
}

Json summary_json(const Summary& s) {
  const std::vector<size_t> order = ranked(s.rows, s.goal);
  Json best = Json::array(), effects = Json::array(), front = Json::array(), failed = Json::array();
  for (size_t i = 0; i < std::min(order.size(), s.top); ++i)
    best.push_back(point_json(s, order[i]));
  for (const Effect& effect : effects_of(s.plan, s.rows, s.goal)) {
    Json axes = Json::array(), means = Json::object();
    for (const size_t axis : effect.axes) axes.push_back(name_of(s.plan.axes[axis]));
    for (size_t v = 0; v < effect.means.size(); ++v) {
      const std::string label = label_of(s.plan.axes[effect.axes.front()], v);
      means[label] = std::isnan(effect.means[v]) ? Json() : Json(effect.means[v]);
    }
    Json one{{"axes", axes}, {"share", effect.share}};
    if (!means.empty()) one["means"] = means;
    effects.push_back(std::move(one));
  }
  for (const size_t point : pareto_front(s.rows, s.goal, "gpus", "step_time_ns")) {
    front.push_back(point_json(s, point));
  }
  for (const auto& [count, reason] : reasons_of(s.rows, &Row::reason)) {
    failed.push_back({{"count", count}, {"reason", reason}});
  }
  return {{"schema", "rehearse.sweep/1"},
          {"study", s.plan.study.name()},
          {"points", s.plan.points.size()},
          {"computed", s.rows.size()},
          {"feasible", order.size()},
          {"objective", s.goal.metric()},
          {"maximise", s.goal.maximise()},
          {"best", best},
          {"effects", effects},
          {"shares_overlap", !is_full_product(s.plan, s.rows, s.goal)},
          {"pareto", front},
          {"failed", failed},
          {"folder", s.folder}};
}

}  // namespace rehearse::cli
