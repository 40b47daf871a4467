// SPDX-License-Identifier: Apache-2.0
// The text at the top of a report: what happened, why, what to do. It needs no script.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"
#include "base/units.hpp"
#include "cli/outcome_groups.hpp"
#include "cli/outcome_text.hpp"
#include "cli/report/html.hpp"
#include "cli/report/html_table.hpp"
#include "cli/report/report.hpp"

namespace rehearse::cli {
namespace {

constexpr int kCausesShown = 5;
constexpr int kFixesShown = 8;

std::string figure(const std::string& value, const std::string& what) {
  return fmt::format("<div><dt>{}</dt><dd>{}</dd></div>", text(what), text(value));
}

// Of the step time: the run's own, or what was drawn of it while fixes were tried; null: none.
const pb::Band* band_of(const ReportRun& run) {
  if (run.outcome.has_step_time_band_ns()) return &run.outcome.step_time_band_ns();
  const bool drawn = run.fixes && run.fixes->has_broken_step_time_band_ns();
  return drawn ? &run.fixes->broken_step_time_band_ns() : nullptr;
}

std::string figures(const ReportRun& run) {
  const pb::Outcome& outcome = run.outcome;
  const int64_t now = outcome.step_time_ns().mean();
  const int64_t before = outcome.baseline_step_time_ns().mean();
  std::string out = "<dl class=\"figures\">";
  if (now > 0) out += figure(format_duration(now), "step time");
  if (before > 0) out += figure(format_duration(before), "as it should be");
  if (now > 0 && before > 0 && outcome.verdict() == pb::COMPLETED) {
    out += figure(fmt::format("{:+.1f} %",
                              100.0 * (static_cast<double>(now) / static_cast<double>(before) - 1)),
                  "change");
  }
  if (const pb::Band* band = band_of(run)) {
    out +=
        figure(fmt::format("{} – {}", format_duration(band->low()), format_duration(band->high())),
               fmt::format("step time in 9 of 10 of {} draws", band->draws()));
  }
  if (outcome.verdict() != pb::COMPLETED && outcome.last_progress_ns() > 0) {
    out += figure(format_duration(outcome.last_progress_ns()), "last progress");
  }
  if (outcome.has_first_failure()) {
    out += figure(fmt::format("rank {}, {}", outcome.first_failure().rank(),
                              format_duration(outcome.first_failure().time_ns())),
                  "first failure");
  }
  out += figure(format_count(outcome.ranks()), "ranks");
  return out + "</dl>\n";
}

std::string what_happened(const ReportRun& run) {
  const pb::Outcome& outcome = run.outcome;
  const bool healthy = outcome.symptom().id() == "healthy";
  const std::string verdict = verdict_name(outcome.verdict());
  const std::string look = outcome.verdict() != pb::COMPLETED ? "bad" : healthy ? "good" : "warn";
  std::string out = "<h2>What happened</h2>\n";
  out += fmt::format("<p class=\"verdict {}\"><strong>{}</strong> {}</p>\n", look, text(verdict),
                     text(step_text(outcome)));
  if (!outcome.symptom().id().empty()) {
    out +=
        fmt::format("<p class=\"symptom\">{}{}", healthy ? "" : text(outcome.symptom().id()) + " ",
                    text(outcome.symptom().label()));
    for (const std::string& reason : outcome.symptom().reasons()) {
      out +=
          fmt::format("{}{}", &reason == &outcome.symptom().reasons(0) ? ": " : "; ", text(reason));
    }
    out += "</p>\n";
  }
  out += figures(run);
  if (outcome.culprits_size() > 0) {
    out += "<ul class=\"culprits\">";
    for (int i = 0; i < std::min(8, outcome.culprits_size()); ++i) {
      out += fmt::format("<li><b>{}</b> {}</li>", text(place_of(outcome.culprits(i))),
                         text(outcome.culprits(i).why()));
    }
    if (outcome.culprits_size() > 8) {
      out += fmt::format("<li>and {} more</li>", outcome.culprits_size() - 8);
    }
    out += "</ul>\n";
  }
  const std::vector<SameText> said = same_texts(outcome);
  if (!said.empty()) {
    out += fmt::format("<details{}><summary>What the ranks print</summary>\n",
                       outcome.verdict() == pb::COMPLETED ? "" : " open");
    for (size_t i = 0; i < std::min<size_t>(8, said.size()); ++i) {
      out += fmt::format(
          "<figure class=\"said\"><figcaption>rank {}</figcaption><pre>{}</pre></figure>\n",
          text(format_ranks(said[i].ranks)), text(said[i].text, 4000));
    }
    if (said.size() > 8) out += fmt::format("<p>and {} more texts</p>", said.size() - 8);
    out += "</details>\n";
  }
  return out;
}

std::string hint(const ReportRun& run, const char* verb, const char* file) {
  return fmt::format(
      "<p class=\"hint\">Not looked for{}. Make it with</p>\n<pre class=\"command\">{} --json &gt; "
      "{}</pre>\n<p class=\"hint\">and give {} to <code>rehearse report</code> after the "
      "outcome.</p>\n",
      run.unexplained.empty() ? "" : ": " + text(run.unexplained),
      text(command_line(run.outcome, verb)), file, file);
}

// What would tell causes apart, and what else the evidence says.
std::string more_about(const pb::Diagnosis& diagnosis) {
  std::string out;
  if (!diagnosis.straggler().empty()) {
    out += fmt::format("<p>Who is late: {}.</p>\n", text(diagnosis.straggler()));
  }
  if (diagnosis.collect_next_size() > 0) {
    out += "<p>To tell the first two apart:</p>\n<ul>";
    for (const std::string& line : diagnosis.collect_next()) {
      out += fmt::format("<li>{}</li>", text(line));
    }
    out += "</ul>\n";
  }
  return out;
}

std::string why(const ReportRun& run) {
  std::string out = "<h2>Why</h2>\n";
  if (!run.diagnosis) {
    if (run.outcome.symptom().id() == "healthy")
      return out + "<p>Nothing is wrong with this run.</p>\n";
    return out + hint(run, "diagnose", "diagnosis.json");
  }
  const pb::Diagnosis& diagnosis = *run.diagnosis;
  if (diagnosis.causes_size() == 0) {
    return out + (diagnosis.symptom().id() == "healthy"
                      ? "<p>Nothing is wrong with this run.</p>\n"
                      : "<p>No fault of the catalogue explains this.</p>\n");
  }
  if (diagnosis.unknown()) {
    out += "<p>No fault of the catalogue explains this; these are the nearest.</p>\n";
  }
  out += "<ol class=\"causes\">\n";
  for (int i = 0; i < std::min(kCausesShown, diagnosis.causes_size()); ++i) {
    const pb::Cause& cause = diagnosis.causes(i);
    out +=
        fmt::format("<li{}><p><b>{}</b> <code>{}</code> <span class=\"score\">{}</span></p>",
                    i == 0 ? " class=\"best\"" : "", text(cause.name()), text(cause.use()),
                    cause.simulated()
                        ? fmt::format("<meter min=\"0\" max=\"1\" value=\"{:.3f}\"></meter> {:.2f}",
                                      cause.score(), cause.score())
                        : "by rules only");
    if (cause.alike_size() > 0) {
      const std::vector<std::string> alike(cause.alike().begin(), cause.alike().end());
      out += fmt::format("<p class=\"note\">would look the same here: {}</p>",
                         text(join_words(alike)));
    }
    if (cause.evidence_size() + cause.against_size() > 0) {
      out += fmt::format("<details{}><summary>evidence</summary><ul class=\"evidence\">",
                         i == 0 ? " open" : "");
      for (const std::string& line : cause.evidence()) {
        out += fmt::format("<li class=\"for\">{}</li>", text(line));
      }
      for (const std::string& line : cause.against()) {
        out += fmt::format("<li class=\"against\">{}</li>", text(line));
      }
      out += "</ul></details>";
    }
    out += "</li>\n";
  }
  return out + "</ol>\n" + more_about(diagnosis) +
         fmt::format("<p class=\"note\">{} runs were simulated to find out.</p>\n",
                     format_count(diagnosis.simulations()));
}

std::string step_cell(const pb::FixTrial& fix) {
  if (!fix.has_step_time_ns()) return "no whole step";
  std::string out = format_duration(fix.step_time_ns());
  if (fix.certainty().has_step_time_band_ns()) {
    const pb::Band& band = fix.certainty().step_time_band_ns();
    out += fmt::format("<div class=\"note\">{} – {}</div>", format_duration(band.low()),
                       format_duration(band.high()));
  }
  return out;
}

// Under the change: against what it is, and what it brings with it.
std::string notes_of(const pb::FixTrial& fix) {
  std::string out = fmt::format("<div class=\"note\">against {}{}</div>", text(fix.use()),
                                fix.refused().empty() ? "" : "; not tried: " + text(fix.refused()));
  if (!fix.false_fix().empty()) {
    out += fmt::format("<div class=\"note\">a false fix: {}</div>", text(fix.false_fix()));
  }
  for (const std::string& effect : fix.side_effects()) {
    out += fmt::format("<div class=\"note\">side effect: {}</div>", text(effect));
  }
  return out;
}

std::string what_to_do(const ReportRun& run) {
  std::string out = "<h2>What to do</h2>\n";
  if (!run.fixes) {
    if (run.outcome.symptom().id() == "healthy") return out + "<p>Nothing.</p>\n";
    return out + hint(run, "fix", "fixes.json");
  }
  if (run.fixes->fixes_size() == 0) return out + "<p>No fix of the catalogue was tried.</p>\n";
  HtmlTable table({{"change"},
                   {"step time", Cells::kFigures},
                   {"recovered", Cells::kFigures},
                   {"restores"},
                   {"certainty"},
                   {"in study", Cells::kFigures}},
                  "fixes");
  for (int i = 0; i < std::min(kFixesShown, run.fixes->fixes_size()); ++i) {
    const pb::FixTrial& fix = run.fixes->fixes(i);
    table.add({text(fix.change()) + notes_of(fix), step_cell(fix),
               fix.has_recovered_ns() ? format_duration(fix.recovered_ns()) : "–",
               fix.restores()            ? "yes"
               : fix.false_fix().empty() ? "no"
                                         : "false fix",
               text(fix.band()), std::to_string(fix.paper_count())},
              fix.restores() ? "good" : "");
  }
  out += table.html();
  out +=
      "<p class=\"note\">Below a step time: nine of ten draws of uncertain parameters, with what "
      "predictions of such changes were off by. In study: how many of its faults this pattern "
      "repaired.</p>\n";
  const auto& patches = run.fixes->fixes(0).patches();
  if (!patches.empty()) {
    out += "<details><summary>The first one as a patch</summary>";
    for (const std::string& patch : patches) {
      out += fmt::format("<pre class=\"command\">{}</pre>", text(patch, 4000));
    }
    out += "</details>\n";
  }
  return out;
}

}  // namespace

std::string answers_html(const ReportRun& run) {
  return fmt::format(
      "<section class=\"answer\">{}</section>\n<section class=\"answer\">{}</section>\n<section "
      "class=\"answer\">{}</section>\n",
      what_happened(run), why(run), what_to_do(run));
}

}  // namespace rehearse::cli
