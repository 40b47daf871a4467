// SPDX-License-Identifier: Apache-2.0
// Tables of a report: runs side by side, findings, communicators, accuracy, how to make it again.
#include <fmt/format.h>

#include <algorithm>

#include "base/units.hpp"
#include "base/version.hpp"
#include "cli/outcome_text.hpp"
#include "cli/report/html.hpp"
#include "cli/report/html_table.hpp"
#include "cli/report/report.hpp"

namespace rehearse::cli {
namespace {

constexpr int kRowsShown = 20;

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

std::string quoted(const std::string& word) {
  const bool plain = !word.empty() && std::ranges::all_of(word, [](unsigned char c) {
    return std::isalnum(c) != 0 ||
           std::string_view("-_./:=,@%+").find(static_cast<char>(c)) != std::string_view::npos;
  });
  if (plain) return word;
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::string critical_path(const pb::Outcome& outcome) {
  if (outcome.critical_path().operations().empty()) return "";
  HtmlTable table({{"what", Cells::kNames},
                   {"kind"},
                   {"share", Cells::kFigures},
                   {"a step is shorter without it by", Cells::kFigures}});
  const auto add = [&](const auto& rows, const char* kind, int most) {
    for (int i = 0; i < std::min(most, rows.size()); ++i) {
      table.add({text(rows[i].name(), 160), kind, percent(rows[i].share()),
                 rows[i].has_saving_ns() ? format_duration(rows[i].saving_ns()) : ""});
    }
  };
  add(outcome.critical_path().operations(), "operation", 8);
  add(outcome.critical_path().links(), "link", 4);
  add(outcome.critical_path().ranks(), "rank", 4);
  return "<h3>Critical path</h3>\n<p class=\"caption\">The same path by operation, by link and by "
         "rank: shares of one kind add up, those of different kinds do not. Where no time stands, "
         "the run was not timed again without it.</p>\n" +
         table.html();
}

std::string communicators(const pb::Outcome& outcome) {
  if (outcome.communicators().empty()) return "";
  HtmlTable table({{"communicator", Cells::kNames},
                   {"ranks", Cells::kFigures},
                   {"transport"},
                   {"calls", Cells::kFigures},
                   {"bytes", Cells::kFigures},
                   {"bus bandwidth", Cells::kFigures},
                   {"algorithms"}});
  for (int i = 0; i < std::min(kRowsShown, outcome.communicators_size()); ++i) {
    const pb::CommunicatorUse& use = outcome.communicators(i);
    const bool fell = !use.offered().empty() && use.offered() != use.transport();
    table.add({text(use.id(), 120), std::to_string(use.ranks()),
               fell ? fmt::format("<span class=\"bad\">{} instead of {}</span>",
                                  text(use.transport()), text(use.offered()))
                    : text(use.transport()),
               format_count(static_cast<uint64_t>(use.calls())), format_bytes(use.bytes()),
               format_bandwidth(use.busbw()), text(use.algorithms())});
  }
  std::string out = "<h3>Communicators</h3>\n" + table.html();
  if (outcome.communicators_size() > kRowsShown) {
    out += fmt::format("<p class=\"note\">and {} more</p>\n",
                       outcome.communicators_size() - kRowsShown);
  }
  return out;
}

// What matters most first; the order of a kind is that of the outcome.
int weight_of(const std::string& severity) {
  return severity == "info" ? 2 : severity == "warning" ? 1 : 0;
}

std::string findings(const pb::Outcome& outcome) {
  const std::string heading = "<h3>Findings</h3>\n";
  if (outcome.findings().empty()) return heading + "<p>None.</p>\n";
  std::vector<const pb::OutcomeFinding*> sorted;
  for (const pb::OutcomeFinding& f : outcome.findings()) sorted.push_back(&f);
  std::ranges::stable_sort(sorted, {}, [](const auto* f) { return weight_of(f->severity()); });
  HtmlTable table({{"finding"}, {"severity"}, {"count", Cells::kFigures}, {"first"}, {"advice"}});
  for (const pb::OutcomeFinding* f : sorted) {
    table.add({text(f->id()),
               fmt::format("<span class=\"severity {}\">{}</span>", text(f->severity()),
                           text(f->severity())),
               format_count(f->count()), text(f->first()), text(f->advice())});
  }
  return heading + table.html();
}

std::string accuracy(const Report& report, const ReportRun& run) {
  const pb::Outcome& outcome = run.outcome;
  std::string out = "<h3>Replay error and accuracy</h3>\n";
  if (outcome.synthetic()) {
    out +=
        "<p>The trace is generated, so there is no measured run to compare this replay with. Every "
        "figure is simulated.</p>\n";
  }
  if (outcome.has_step_time_band_ns()) {
    const pb::Band& band = outcome.step_time_band_ns();
    out += fmt::format("<p>Step time: {} – {} in 9 of 10 of {} draws from {} ({}).</p>\n",
                       format_duration(band.low()), format_duration(band.high()), band.draws(),
                       text(band.from()), text(band.note()));
  } else if (run.fixes && run.fixes->has_broken_step_time_band_ns()) {
    const pb::Band& band = run.fixes->broken_step_time_band_ns();
    out += fmt::format("<p>Step time: {} – {} in 9 of 10 of {} draws from {}.</p>\n",
                       format_duration(band.low()), format_duration(band.high()), band.draws(),
                       text(band.from()));
  } else {
    out +=
        "<p>No error band was asked for; <code>rehearse run … --draws 40 --json</code> adds "
        "one.</p>\n";
  }
  if (report.checks.empty()) {
    return out +
           "<p class=\"note\">How far replays and predictions are from measurements: give the "
           "document "
           "of <code>rehearse validate --json</code> (or, for a recorded trace, <code>rehearse "
           "validate "
           "replay TRACE --json</code>) to <code>rehearse report</code>.</p>\n";
  }
  HtmlTable table({{"check"},
                   {"n", Cells::kFigures},
                   {"median error, or what is judged", Cells::kFigures},
                   {"90 % below", Cells::kFigures},
                   {"target", Cells::kFigures},
                   {"met"}});
  for (const ReportCheck& check : report.checks) {
    table.add({text(check.what), std::to_string(check.n), text(check.figure), text(check.p90_error),
               text(check.target), text(check.verdict)});
  }
  return out + table.html();
}

std::string again(const ReportRun& run) {
  const pb::Outcome& outcome = run.outcome;
  std::string out = "<h3>Make this again</h3>\n<pre class=\"command\">";
  const std::string name = run.file.empty() ? "outcome.json" : run.file;
  out += text(command_line(outcome, "run") + " --json > " + quoted(name), 8000) + "\n";
  if (run.diagnosis)
    out += text(command_line(outcome, "diagnose") + " --json > diagnosis.json", 8000) + "\n";
  if (run.fixes) out += text(command_line(outcome, "fix") + " --json > fixes.json", 8000) + "\n";
  out += text("rehearse report " + quoted(name), 8000);
  if (run.diagnosis) out += " diagnosis.json";
  if (run.fixes) out += " fixes.json";
  out += " -o report.html</pre>\n";
  out += fmt::format(
      "<p class=\"note\">Simulated by rehearse {}, seed {}; this page by rehearse {}. Same input, "
      "same bytes.</p>\n",
      text(outcome.version()), outcome.seed(), text(version()));
  if (outcome.patches_size() > 0) {
    out += "<details><summary>What was changed in the scenario</summary>";
    for (const std::string& patch : outcome.patches()) {
      out += fmt::format("<pre>{}</pre>", text(patch, 4000));
    }
    out += "</details>\n";
  }
  return out;
}

}  // namespace

std::string command_line(const pb::Outcome& outcome, std::string_view verb) {
  // Outcomes of other origin than `run` name their scenario at least.
  std::string out = fmt::format("rehearse {}", verb);
  if (outcome.command_size() < 3) return out + " " + quoted(outcome.scenario());
  for (int i = 2; i < outcome.command_size(); ++i) {
    if (outcome.command(i) == "--draws" && verb != "run") {
      ++i;
      continue;
    }
    out += " " + quoted(outcome.command(i));
  }
  return out;
}

std::string comparison_html(const Report& report) {
  HtmlTable table({{"run"},
                   {"verdict"},
                   {"symptom"},
                   {"step time", Cells::kFigures},
                   {"against the first", Cells::kFigures},
                   {"compute", Cells::kFigures},
                   {"communication", Cells::kFigures},
                   {"waiting", Cells::kFigures}},
                  "comparison");
  const auto mean = [](const pb::Outcome& outcome, int64_t (pb::RankBreakdown::*part)() const) {
    if (outcome.breakdown().empty()) return std::string("–");
    int64_t sum = 0;
    for (const pb::RankBreakdown& rank : outcome.breakdown()) sum += (rank.*part)();
    return format_duration(sum / outcome.breakdown_size());
  };
  const int64_t first = report.runs.front().outcome.step_time_ns().mean();
  for (size_t i = 0; i < report.runs.size(); ++i) {
    const pb::Outcome& outcome = report.runs[i].outcome;
    const int64_t now = outcome.step_time_ns().mean();
    // Steps before a run stopped tell nothing of what stopped it.
    const bool stopped = outcome.verdict() == pb::HANG || outcome.verdict() == pb::CRASH;
    const bool comparable = i > 0 && first > 0 && now > 0 && !stopped;
    table.add({fmt::format("<a href=\"#run-{}\">{}</a>", i, text(report.runs[i].name)),
               text(verdict_name(outcome.verdict())), text(outcome.symptom().label()),
               now > 0 ? format_duration(now) : "no whole step",
               comparable ? fmt::format(
                                "{:+.1f} %",
                                100.0 * (static_cast<double>(now) / static_cast<double>(first) - 1))
                          : "–",
               mean(outcome, &pb::RankBreakdown::compute),
               mean(outcome, &pb::RankBreakdown::communication),
               mean(outcome, &pb::RankBreakdown::wait)});
  }
  return table.html();
}

std::string details_html(const Report& report, const ReportRun& run) {
  return critical_path(run.outcome) + communicators(run.outcome) + accuracy(report, run) +
         findings(run.outcome) + again(run);
}

}  // namespace rehearse::cli
