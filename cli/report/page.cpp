// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <span>

#include "base/embedded.hpp"
#include "base/packed.hpp"
#include "base/units.hpp"
#include "base/version.hpp"
#include "cli/report/html.hpp"
#include "cli/report/report.hpp"
#include "sim/outcome/overview.hpp"

namespace rehearse {
std::span<const EmbeddedFile> report_files();  // cli/CMakeLists.txt
}

namespace rehearse::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kScripts[] = {"d3.min.js",   "pako_inflate.min.js", "draw.js",    "charts.js",
                                    "timeline.js", "cluster.js",          "waiting.js", "study.js",
                                    "page.js"};

std::string_view asset(std::string_view name) {
  for (const EmbeddedFile& file : report_files()) {
    if (file.name == name) return file.bytes;
  }
  return {};
}

// Each "@name@" of the template once; what is put in is not looked at again.
std::string filled(std::string_view page,
                   std::initializer_list<std::pair<std::string_view, std::string>> values) {
  std::string out;
  while (true) {
    const size_t at = page.find('@');
    out += page.substr(0, at);
    if (at == page.npos) return out;
    page.remove_prefix(at + 1);
    const size_t end = page.find('@');
    const std::string_view name = page.substr(0, end);
    for (const auto& [key, value] : values) {
      if (key == name) out += value;
    }
    page.remove_prefix(end + 1);
  }
}

// A place where the page draws, with a heading and what to read where nothing is drawn.
std::string picture(size_t run, const char* name, const char* heading, const char* caption) {
  return fmt::format(
      "<section class=\"picture\" id=\"{}-{}\" data-picture=\"{}\" data-run=\"{}\" "
      "hidden><h3>{}</h3><p class=\"caption\">{}</p><div class=\"canvas\"></div></section>\n",
      name, run, name, run, heading, caption);
}

// Somewhere a range was drawn.
bool has_ranges(const ReportRun& run) {
  if (run.outcome.has_step_time_band_ns() || run.baseline_band) return true;
  if (!run.fixes) return false;
  return run.fixes->has_broken_step_time_band_ns() ||
         std::ranges::any_of(run.fixes->fixes(), [](const pb::FixTrial& fix) {
           return fix.certainty().has_step_time_band_ns();
         });
}

std::string pictures(const ReportRun& of, size_t run) {
  return picture(run, "steps", "Step time",
                 has_ranges(of) ? "Mean over the steps; dots are single steps, whiskers the range "
                                  "of nine of ten draws."
                                : "Mean over the steps; dots are single steps. No range was drawn: "
                                  "<code>--draws</code> of <code>run</code> and <code>fix</code> "
                                  "adds one.") +
         picture(run, "breakdown", "Where a step goes",
                 "Every rank by itself, sorted by the time it waits for others.") +
         picture(run, "timeline", "Timeline",
                 "Drag to move, Ctrl + wheel or + and − to zoom, click to select.") +
         picture(run, "cluster", "Cluster",
                 "Colour is the use of a link at the time of the slider; what is to blame is "
                 "outlined.") +
         picture(run, "waiting", "Who waits for whom",
                 "An arrow points at the ranks that are waited for.") +
         picture(run, "memory", "Memory", "In use over time, of the ranks whose GPU is fullest.");
}

std::string run_html(const Report& report, size_t i) {
  const ReportRun& run = report.runs[i];
  std::string out =
      fmt::format("<article class=\"run\" id=\"run-{}\" aria-label=\"{}\">\n", i, text(run.name));
  if (report.runs.size() > 1)
    out += fmt::format("<h2 class=\"run-name\">{}</h2>\n", text(run.name));
  out += answers_html(run);
  out += "<section class=\"pictures\">\n<h2>Pictures</h2>\n";
  if (run.outcome.pictures().empty()) {
    out +=
        "<p class=\"hint\">This outcome has no timeline: it was made by something else than "
        "<code>rehearse run --json</code>, or the job never started.</p>\n";
  }
  out += pictures(run, i) + "</section>\n";
  out += "<section class=\"details\">\n<h2>Details</h2>\n" + details_html(report, run) +
         "</section>\n";
  return out + "</article>\n";
}

std::string subtitle(const Report& report) {
  if (report.runs.empty()) {
    return report.studies.size() > 1 ? fmt::format("{} studies", report.studies.size()) : "a study";
  }
  const pb::Outcome& first = report.runs.front().outcome;
  if (report.runs.size() > 1) return fmt::format("{} runs side by side", report.runs.size());
  return fmt::format("{} ranks on {}; the trace is {}, the cluster simulated",
                     format_count(first.ranks()), text(first.platform()),
                     first.synthetic() ? "synthetic" : "recorded");
}

constexpr size_t kEntries = 200'000;  // of the timelines of all runs together
constexpr size_t kRanksInDetail = 8;

void share_room(Report& report) {
  if (report.runs.size() < 2) return;
  for (ReportRun& run : report.runs) {
    if (!run.pictures.has_timeline()) continue;
    *run.pictures.mutable_timeline() =
        sim::overview(run.pictures.timeline(),
                      {.entries = kEntries / report.runs.size(),
                       .in_detail = sim::ranks_of_interest(run.outcome, kRanksInDetail)});
  }
}

}  // namespace

std::string report_html(Report report) {
  share_room(report);
  Json runs = Json::array();
  std::string content;
  if (report.runs.size() > 1) {
    content +=
        "<section class=\"answer\"><h2>Runs</h2>\n" + comparison_html(report) +
        picture(report.runs.size(), "compare", "Step time", "Mean over the steps of each run.") +
        "</section>\n";
  }
  for (size_t i = 0; i < report.runs.size(); ++i) {
    content += run_html(report, i);
    runs.push_back(page_data(report.runs[i]));
  }
  Json studies = Json::array();
  for (size_t i = 0; i < report.studies.size(); ++i) {
    content += study_html(report.studies[i], i);
    studies.push_back(study_data(report.studies[i]));
  }
  const Json data = {{"runs", std::move(runs)}, {"studies", std::move(studies)}};
  // Texts were made UTF-8 where they came in; what slipped through is replaced, not refused.
  const std::string packed = pack(data.dump(-1, ' ', false, Json::error_handler_t::replace));
  // A script runs only with this number, which nobody can know who writes a name into a trace.
  const std::string nonce = fmt::format("{:016x}", XXH3_64bits(packed.data(), packed.size()));
  std::string scripts;
  for (const char* script : kScripts) {
    scripts += fmt::format("<script nonce=\"{}\">\n{}\n</script>\n", nonce, asset(script));
  }
  const std::string title = report.runs.size() > 1    ? "Comparison"
                            : report.runs.size() == 1 ? report.runs.front().outcome.scenario()
                                                      : report.studies.front().name;
  return filled(asset("page.html"), {{"nonce", nonce},
                                     {"version", text(version())},
                                     {"title", text(title)},
                                     {"subtitle", subtitle(report)},
                                     {"style", std::string(asset("page.css"))},
                                     {"content", content},
                                     {"data", packed},
                                     {"scripts", scripts}});
}

}  // namespace rehearse::cli
