// SPDX-License-Identifier: Apache-2.0
#include "cli/report/study.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/units.hpp"
#include "cli/report/html.hpp"
#include "cli/report/html_table.hpp"
#include "cli/study/summary.hpp"

namespace rehearse::cli {
namespace {

using Json = nlohmann::ordered_json;
constexpr size_t kPointsShown = 20, kValuesShown = 64;

const Json& list_in(const Json& json, const char* key) {
  static const Json none = Json::array();
  const auto at = json.is_object() ? json.find(key) : json.end();
  return at != json.end() && at->is_array() ? *at : none;
}

double figure_of(const Json& json, const std::string& key) {
  const auto at = json.is_object() ? json.find(key) : json.end();
  return at != json.end() && at->is_number() ? std::clamp(at->get<double>(), -1e18, 1e18) : 0;
}

uint64_t count_of(const Json& json, const char* key) {
  return static_cast<uint64_t>(std::max(0.0, figure_of(json, key)));
}

std::string words_of(const Json& json, const char* key) {
  const auto at = json.is_object() ? json.find(key) : json.end();
  return at != json.end() && at->is_string() ? at->get<std::string>() : "";
}

// Axes that are the same in all of these points tell nothing.
std::vector<ReportStudy::Point> points_of(const Json& rows, const Json& compared,
                                          const std::string& objective) {
  const auto varies = [&](const std::string& axis, const Json& value) {
    return std::ranges::any_of(compared, [&](const Json& row) {
      const auto axes = row.is_object() ? row.find("axes") : row.end();
      return axes != row.end() && axes->is_object() && axes->contains(axis) &&
             (*axes)[axis] != value;
    });
  };
  std::vector<ReportStudy::Point> out;
  for (const Json& row : rows) {
    if (!row.is_object()) continue;
    ReportStudy::Point point{.label = "",
                             .value = figure_of(row, objective),
                             .gpus = figure_of(row, "gpus"),
                             .step_time = figure_of(row, "step_time_ns"),
                             .low = figure_of(row, "step_time_low_ns"),
                             .high = figure_of(row, "step_time_high_ns"),
                             .symptom = words_of(row, "symptom")};
    if (const auto axes = row.find("axes"); axes != row.end() && axes->is_object()) {
      for (const auto& [axis, value] : axes->items()) {
        if (!value.is_string() || !varies(axis, value)) continue;
        point.label +=
            fmt::format("{}{}={}", point.label.empty() ? "" : ", ", axis, value.get<std::string>());
      }
    }
    if (point.label.empty()) point.label = fmt::format("point {}", count_of(row, "point"));
    out.push_back(std::move(point));
    if (out.size() == kPointsShown) break;
  }
  return out;
}

ReportStudy::Effect effect_of(const Json& row) {
  ReportStudy::Effect effect{.axes = "", .share = figure_of(row, "share"), .means = {}};
  for (const Json& axis : list_in(row, "axes")) {
    if (!axis.is_string()) continue;
    effect.axes += (effect.axes.empty() ? "" : " with ") + axis.get<std::string>();
  }
  const auto means = row.is_object() ? row.find("means") : row.end();
  if (means == row.end() || !means->is_object()) return effect;
  for (const auto& [label, mean] : means->items()) {
    if (!mean.is_number()) continue;  // no point there is feasible
    effect.means.emplace_back(label, std::clamp(mean.get<double>(), -1e18, 1e18));
    if (effect.means.size() == kValuesShown) break;
  }
  return effect;
}

// "exposed_communication_ns" -> "exposed communication": its figures bring their own unit.
std::string words_for(const std::string& objective) {
  std::string_view name = objective;
  for (const std::string_view unit : {"_ns", "_bytes"}) {
    if (name.ends_with(unit)) name.remove_suffix(unit.size());
  }
  std::string out = shortened(name, 80);
  std::ranges::replace(out, '_', ' ');
  return out;
}

std::string range_of(const ReportStudy::Point& point) {
  if (!(point.high > 0)) return "not drawn";
  return format_duration(static_cast<Nanos>(point.low)) + " – " +
         format_duration(static_cast<Nanos>(point.high));
}

std::string place(size_t index, const char* name, const char* heading, const char* caption) {
  return fmt::format(
      "<section class=\"picture\" id=\"study-{}-{}\" data-study=\"{}\" data-study-picture=\"{}\" "
      "hidden><h3>{}</h3><p class=\"caption\">{}</p><div class=\"canvas\"></div></section>\n",
      name, index, index, name, heading, caption);
}

std::string best_html(const ReportStudy& study) {
  const bool drawn = std::ranges::any_of(
      study.best, [](const ReportStudy::Point& point) { return point.high > 0; });
  std::vector<HtmlColumn> columns = {{"best", Cells::kFigures},
                                     {"point", Cells::kNames},
                                     {words_for(study.objective), Cells::kFigures}};
  if (drawn) columns.push_back({"step time in 9 of 10 draws", Cells::kFigures});
  columns.push_back({"symptom"});
  HtmlTable table(std::move(columns));
  for (size_t i = 0; i < study.best.size(); ++i) {
    const ReportStudy::Point& point = study.best[i];
    std::vector<std::string> cells = {std::to_string(i + 1), text(point.label, 200),
                                      text(shown_figure(study.objective, point.value))};
    if (drawn) cells.push_back(range_of(point));
    cells.push_back(text(point.symptom));
    table.add(cells);
  }
  if (drawn) return table.html();
  return table.html() +
         "<p class=\"hint\">Without ranges: <code>rehearse sweep --draws 20</code> "
         "adds one to every point.</p>\n";
}

Json points_json(const std::vector<ReportStudy::Point>& points) {
  Json out = Json::array();
  for (const ReportStudy::Point& point : points) {
    out.push_back({{"label", point.label},
                   {"value", point.value},
                   {"gpus", point.gpus},
                   {"step", point.step_time},
                   {"symptom", point.symptom}});
  }
  return out;
}

}  // namespace

ReportStudy study_of(const Json& document) {
  ReportStudy study;
  study.name = words_of(document, "study");
  study.objective = words_of(document, "objective");
  const auto yes = [&](const char* key) {
    const auto at = document.find(key);
    return at != document.end() && at->is_boolean() && at->get<bool>();
  };
  study.maximise = yes("maximise");
  study.overlap = yes("shares_overlap");
  study.points = count_of(document, "points");
  study.computed = count_of(document, "computed");
  study.feasible = count_of(document, "feasible");
  const Json &best = list_in(document, "best"), &front = list_in(document, "pareto");
  Json compared = best;
  compared.insert(compared.end(), front.begin(), front.end());
  study.best = points_of(best, compared, study.objective);
  study.front = points_of(front, compared, study.objective);
  for (const Json& row : list_in(document, "effects")) {
    ReportStudy::Effect effect = effect_of(row);
    // An axis of one value makes no difference.
    const bool pair = list_in(row, "axes").size() > 1;
    if (!effect.axes.empty() && (pair || effect.means.size() > 1)) {
      study.effects.push_back(std::move(effect));
    }
  }
  for (const Json& row : list_in(document, "failed")) {
    study.failed.emplace_back(count_of(row, "count"), words_of(row, "reason"));
  }
  return study;
}

std::string study_html(const ReportStudy& study, size_t index) {
  std::string out = fmt::format(
      "<article class=\"study\" id=\"study-{}\" aria-label=\"{}\">\n<section "
      "class=\"answer\">\n<h2>{}</h2>\n",
      index, text(study.name), text(study.name));
  if (!study.best.empty()) {
    const ReportStudy::Point& best = study.best.front();
    out += fmt::format("<p class=\"verdict good\"><strong>{}</strong> has the {} {}, {}</p>\n",
                       text(best.label, 200), study.maximise ? "most" : "least",
                       text(words_for(study.objective)),
                       text(shown_figure(study.objective, best.value)));
  }
  out += fmt::format(
      "<p>{} of {} points computed, {} feasible; best is the {} <code>{}</code>.</p>\n",
      format_count(study.computed), format_count(study.points), format_count(study.feasible),
      study.maximise ? "most" : "least", text(study.objective, 80));
  for (const auto& [count, reason] : study.failed) {
    out += fmt::format("<p class=\"bad\">{} failed: {}</p>\n", format_count(count), text(reason));
  }
  if (!study.best.empty()) {
    out += best_html(study);
  }
  out += "</section>\n<section class=\"pictures\">\n<h2>Pictures</h2>\n";
  out += place(index, "best", "Best points", "The objective of each, the best first.");
  out += place(index, "shares", "What matters",
               study.overlap
                   ? "The part of each axis, and of each pair beyond its axes, in the differences "
                     "between feasible points. Not every combination of values is one of them: "
                     "shares overlap."
                   : "The part of each axis, and of each pair beyond its axes, in the differences "
                     "between feasible points.");
  out += place(index, "means", "What each axis does",
               "The mean of the objective over all feasible points with this value.");
  out += place(index, "front", "Step time against GPUs",
               "No point has fewer GPUs and a shorter step than one on the line.");
  return out + "</section>\n</article>\n";
}

Json study_data(const ReportStudy& study) {
  Json effects = Json::array();
  for (const ReportStudy::Effect& effect : study.effects) {
    Json means = Json::array();
    for (const auto& [label, mean] : effect.means) means.push_back({label, mean});
    effects.push_back({{"axes", effect.axes}, {"share", effect.share}, {"means", means}});
  }
  return {{"name", study.name},
          {"objective", study.objective},
          {"best", points_json(study.best)},
          {"front", points_json(study.front)},
          {"effects", effects}};
}

}  // namespace rehearse::cli
