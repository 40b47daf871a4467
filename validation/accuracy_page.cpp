// SPDX-License-Identifier: Apache-2.0
#include "validation/accuracy_page.hpp"

#include <fmt/format.h>

namespace rehearse::validation {
namespace {

std::string in_percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

bool judged_by_median(const Check& check) { return check.metric == "median error"; }

}  // namespace

CheckFigures figures_of(const Check& check) {
  if (check.skipped) return {"", "", ""};
  CheckFigures out;
  const bool share = judged_by_median(check) || check.metric.starts_with("share");
  out.figure = share ? in_percent(check.value) : fmt::format("{:.3g}", check.value);
  if (!check.rows.empty() && judged_by_median(check)) out.p90 = in_percent(check.p90_error);
  out.target = fmt::format("{} {}", check.at_least ? "at least" : "at most",
                           share ? in_percent(check.target) : fmt::format("{:.3g}", check.target));
  if (check.p90_target > 0) out.target += ", 9 of 10 " + in_percent(check.p90_target);
  return out;
}

std::string accuracy_page(const std::vector<Check>& checks) {
  std::string out =
      "# How far from measured\n\n"
      "Made by `rehearse validate --data DIR --markdown`; every figure comes from data that "
      "anybody can look at (`--rows` lists prediction, measurement, source and command of each). "
      "The interval is the 95 % interval of the median error, drawn over configurations; none is "
      "given of fewer than five.\n\n"
      "| check | what | rows | figure | interval | 9 of 10 | target | met |\n"
      "|---|---|--:|--:|--:|--:|---|---|\n";
  for (const Check& check : checks) {
    const CheckFigures cells = figures_of(check);
    const bool interval = !check.skipped && check.interval && judged_by_median(check);
    out += fmt::format(
        "| `{}` | {} | {} | {}{} | {} | {} | {} | {} |\n", check.id, check.what, check.n,
        judged_by_median(check) || check.skipped ? "" : check.metric + " ", cells.figure,
        interval ? in_percent(check.interval->low) + " to " + in_percent(check.interval->high) : "",
        cells.p90, cells.target,
        check.skipped ? "skipped"
        : check.met   ? "yes"
                      : "**no**");
  }
  for (const Check& check : checks) {
    if (check.why.empty() && check.assumptions.empty()) continue;
    out += fmt::format("\n## {}\n\n", check.id);
    if (!check.why.empty()) out += check.why + "\n";
    if (!check.why.empty() && !check.assumptions.empty()) out += "\n";
    for (const std::string& assumed : check.assumptions) out += "- " + assumed + "\n";
  }
  return out;
}

}  // namespace rehearse::validation
