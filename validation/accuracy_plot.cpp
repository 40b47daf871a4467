// SPDX-License-Identifier: Apache-2.0
#include "validation/accuracy_plot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "validation/accuracy_page.hpp"

namespace rehearse::validation {
namespace {

constexpr double kPlotSize = 360;
constexpr double kPlotMargin = 44;
constexpr size_t kMostPoints = 2000;  // per plot; more are thinned evenly

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

// Decades that hold all figures.
struct Decades {
  double low = 0, high = 1;
  [[nodiscard]] double at(double value) const {
    return kPlotMargin + (std::log10(value) - low) / (high - low) * (kPlotSize - 2 * kPlotMargin);
  }
};

Decades decades_of(const std::vector<CheckRow>& rows) {
  double least = INFINITY, most = 0;
  for (const CheckRow& row : rows) {
    for (const double value : {row.predicted, row.measured}) {
      if (value > 0) {
        least = std::min(least, value);
        most = std::max(most, value);
      }
    }
  }
  if (!(most > 0)) return {};
  Decades out{std::floor(std::log10(least)), std::ceil(std::log10(most))};
  if (out.high <= out.low) out.high = out.low + 1;
  return out;
}

std::string line(double x1, double y1, double x2, double y2, const char* style) {
  return fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" class=\"{}\"/>",
                     x1, kPlotSize - y1, x2, kPlotSize - y2, style);
}

}  // namespace

std::string accuracy_svg(const Check& check) {
  const Decades decades = decades_of(check.rows);
  std::string out = fmt::format(
      "<svg class=\"accuracy\" viewBox=\"0 0 {0} {0}\" width=\"{0}\" height=\"{0}\" role=\"img\" "
      "aria-label=\"predicted against measured\">",
      kPlotSize);
  for (double decade = decades.low; decade <= decades.high; decade += 1) {
    const double at = decades.at(std::pow(10, decade));
    out += line(at, kPlotMargin, at, kPlotSize - kPlotMargin, "grid");
    out += line(kPlotMargin, at, kPlotSize - kPlotMargin, at, "grid");
    out += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\">1e{}</text>", at - 10,
                       kPlotSize - kPlotMargin + 14, decade);
    out += fmt::format("<text x=\"4\" y=\"{:.1f}\">1e{}</text>", kPlotSize - at + 4, decade);
  }
  out += line(kPlotMargin, kPlotMargin, kPlotSize - kPlotMargin, kPlotSize - kPlotMargin, "right");
  const size_t every = 1 + check.rows.size() / kMostPoints;
  for (size_t i = 0; i < check.rows.size(); i += every) {
    const CheckRow& row = check.rows[i];
    if (!(row.predicted > 0) || !(row.measured > 0)) continue;
    if (row.low > 0 && row.high > row.low) {
      const double x = decades.at(row.measured);
      out += line(x, decades.at(row.low), x, decades.at(row.high), "band");
    }
    out += fmt::format(
        "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2\"><title>{}: predicted {:.4g} {}, measured "
        "{:.4g} {}</title></circle>",
        decades.at(row.measured), kPlotSize - decades.at(row.predicted), escaped(row.what),
        row.predicted, escaped(row.unit), row.measured, escaped(row.unit));
  }
  std::set<std::string> units;
  for (const CheckRow& row : check.rows) units.insert(row.unit);
  const std::string unit =
      units.size() == 1 && !units.begin()->empty() ? ", " + escaped(*units.begin()) : "";
  out += fmt::format("<text x=\"{:.0f}\" y=\"{:.0f}\">measured{}</text>", kPlotSize / 2 - 30,
                     kPlotSize - 8, unit);
  out += fmt::format("<text x=\"{:.0f}\" y=\"14\">predicted{}</text></svg>", kPlotMargin, unit);
  return out;
}

std::string accuracy_style() {
  return ".accuracy{display:block}.accuracy text{font-size:10px;fill:#555}"
         ".accuracy circle{fill:#1f6feb;fill-opacity:.45}.accuracy .grid{stroke:#ddd}"
         ".accuracy .right{stroke:#555;stroke-dasharray:4 3}.accuracy .band{stroke:#1f6feb;"
         "stroke-opacity:.25}";
}

std::string accuracy_plots(const std::vector<Check>& checks) {
  std::string out =
      "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>Predicted against "
      "measured</title><style>body{font:14px sans-serif;margin:2em;max-width:60em}" +
      accuracy_style() + "</style></head><body><h1>Predicted against measured</h1>";
  for (const Check& check : checks) {
    const CheckFigures figures = figures_of(check);
    out += fmt::format(
        "<h2>{}</h2><p>{}</p><p>{}</p>", escaped(check.id), escaped(check.what),
        check.skipped
            ? "skipped: " + escaped(check.why)
            : escaped(fmt::format("{} rows, {} {}, target {}: {}", check.n, check.metric,
                                  figures.figure, figures.target, check.met ? "met" : "not met")));
    if (!check.rows.empty()) out += accuracy_svg(check);
  }
  return out + "</body></html>\n";
}

}  // namespace rehearse::validation
