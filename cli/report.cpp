// SPDX-License-Identifier: Apache-2.0
// `rehearse report`: outcomes as a page to look at.
#include "cli/report/report.hpp"

#include <fmt/format.h>

#include <boost/program_options/value_semantic.hpp>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "base/units.hpp"
#include "cli/case.hpp"
#include "cli/outcome_file.hpp"
#include "cli/outcome_text.hpp"
#include "cli/report/documents.hpp"
#include "cli/report/explain.hpp"
#include "cli/scenario_options.hpp"
#include "cli/verbs.hpp"
#include "faults/symptoms/classifier.hpp"
#include "sim/outcome/pictures.hpp"
#include "validation/replay_check.hpp"

namespace rehearse::cli {
namespace {
namespace po = boost::program_options;
using Json = nlohmann::ordered_json;

// How far the replay of a recorded job is from what was measured; nothing where that cannot be said.
void add_replay_error(const sim::Scenario& recorded, Reporter& reporter, Report& report) {
  const auto replay = validation::check_replay(recorded, reporter);
  if (!replay || !validation::predicts_steps(*replay)) return;
  const std::vector<double> errors =
      validation::step_errors(*replay, &validation::RankStep::predicted);
  if (errors.empty()) return;
  const auto at = [&](double share) {
    const auto last = static_cast<double>(errors.size() - 1);
    return fmt::format("{:.1f} %", 100 * errors[static_cast<size_t>(std::lround(share * last))]);
  };
  report.checks.push_back({.what = "step time of each rank, this job replayed as recorded",
                           .target = "",
                           .verdict = "",
                           .figure = at(0.5),
                           .p90_error = at(0.9),
                           .n = errors.size()});
}

// The same of outcomes whose recorded trace is still there and is not too large, once for all of one trace.
void add_replay_errors(Reporter& reporter, Report& report) {
  std::set<std::string> seen;
  for (const ReportRun& run : report.runs) {
    const pb::Origin& origin = run.outcome.origin();
    if (run.outcome.synthetic() || origin.scenario().empty()) continue;
    if (!seen.insert(origin.scenario()).second) continue;
    pb::Origin recorded;
    recorded.set_scenario(origin.scenario());
    *recorded.mutable_written() = origin.written();
    const std::string folder = std::filesystem::path(run.file).parent_path().string();
    const auto scenario = sim::load_origin(recorded, folder, reporter);
    if (!scenario) continue;
    const auto budget = explain_budget(scenario->trace->operations(), Explained::kBeside, 1);
    if (budget.causes > 0) add_replay_error(*scenario, reporter, report);
  }
}

// Simulates a scenario, and finds out what is wrong with it.
Result<Report> simulated_report(Context& context) {
  const std::string& input = context.inputs().front();
  RH_TRY(const Edited edited, load_edited(context, input));
  ReportRun run;
  RH_TRY(run.outcome, simulate_edited(edited, sim::Detail::kPictures, context.reporter()));
  if (!run.outcome.pictures().empty()) {
    RH_TRY(run.pictures, sim::unpacked_pictures(run.outcome.pictures(), input));
  }
  run.name = run.outcome.scenario();
  for (std::string& word : command_words(context)) run.outcome.add_command(std::move(word));
  if (run.outcome.symptom().id() != faults::kHealthy && !context.has("as-is")) {
    RH_TRY(const Case what, load_case(context));
    const ExplainBudget budget =
        explain_budget(what.healthy.trace->operations(), Explained::kAsked, 1);
    if (auto done = explain(what, budget, context, run); !done) {
      return tl::unexpected(done.error());
    }
  }
  Report report;
  if (!run.outcome.synthetic()) add_replay_error(edited.base, context.reporter(), report);
  report.runs.push_back(std::move(run));
  return report;
}

Result<Report> load_report(Context& context) {
  size_t documents = 0;
  for (const std::string& input : context.inputs()) documents += is_outcome_file(input) ? 1 : 0;
  if (documents == context.inputs().size()) {
    for (const char* option : {"set", "fault", "patch", "patch-file", "fidelity"}) {
      if (context.has(option)) {
        return fail(Code::kUsage, "an outcome cannot be changed", fmt::format("--{}", option),
                    "leave it out, or give the scenario itself");
      }
    }
    RH_TRY(Report report, read_report(context.inputs()));
    if (context.has("as-is")) return report;
    if (auto done = explain_outcomes(context, report); !done) return tl::unexpected(done.error());
    add_replay_errors(context.reporter(), report);
    return report;
  }
  if (context.inputs().size() == 1) return simulated_report(context);
  return fail(Code::kUsage, "a scenario stands alone; documents (.json) may be several",
              context.inputs().front(), "simulate each with `rehearse run --json` first");
}

Result<int> run_report(Context& context) {
  if (!context.output() && context.terminal().is_terminal()) {
    return fail(Code::kUsage, "a page is not for a terminal", "report", "name a file with -o FILE");
  }
  RH_TRY(const Report report, load_report(context));
  const std::string page = report_html(report);
  if (!context.output()) return exit_code(context.print(std::string_view(page)));
  if (auto done = write_file(*context.output(), page, context.overwrite()); !done) {
    return tl::unexpected(std::move(done).error());
  }
  if (context.json()) {
    Json runs = Json::array();
    for (const ReportRun& run : report.runs) {
      runs.push_back({{"name", run.name},
                      {"scenario", run.outcome.scenario()},
                      {"verdict", verdict_name(run.outcome.verdict())},
                      {"causes", run.diagnosis ? run.diagnosis->causes_size() : 0},
                      {"fixes", run.fixes ? run.fixes->fixes_size() : 0}});
    }
    return exit_code(context.print_stdout(Json{{"schema", "rehearse.report/1"},
                                               {"output", *context.output()},
                                               {"bytes", page.size()},
                                               {"runs", runs},
                                               {"studies", report.studies.size()}}));
  }
  context.reporter().note(
      fmt::format("{}: {}", *context.output(), format_bytes(static_cast<Bytes>(page.size()))));
  return 0;
}

}  // namespace

Verb report_verb() {
  Verb verb;
  verb.name = "report";
  verb.summary = "what happened, why and what to do, as a page with pictures";
  verb.details =
      "INPUT is an outcome (run --json), or several to compare. An outcome that remembers its "
      "scenario is diagnosed and repaired on the spot, as far as a few seconds of simulation go; "
      "the "
      "documents of diagnose --json and fix --json after an outcome are taken instead, that of "
      "validate --json adds accuracy, that of sweep --json a study: its best points, what matters, "
      "step time against GPUs. Or INPUT is a scenario, which is simulated first. The page is one "
      "file "
      "that opens offline in any browser.";
  verb.positionals = {
      {"INPUT", "outcomes and what belongs to them, or a scenario", Count::kSome, {}}};
  verb.options = [](po::options_description& options) {
    add_scenario_options(options);
    options.add_options()("as-is", "look for no causes and fixes beyond those given");
  };
  verb.writes = Writes::kFile;
  verb.examples = {{"./rehearse run ddp-16 --fault F16 --json -o slow.json", "an outcome"},
                   {"./rehearse report slow.json -o slow.html", "as a page, with causes and fixes"},
                   {"./rehearse diagnose slow.json --json > why.json", "its cause", 1},
                   {"./rehearse report slow.json why.json -o slow-why.html", "both as a page"},
                   {"./rehearse run ddp-16 --json -o healthy.json", "the job as it should be"},
                   {"./rehearse report healthy.json slow.json -o compared.html", "side by side"},
                   {"./rehearse sweep bucket-size -o buckets --json > buckets.json", "a study"},
                   {"./rehearse report buckets.json -o buckets.html", "its pictures"},
                   {"./rehearse report ddp-16 --fault F21 -o hang.html",
                    "all in one: run, diagnose, fix, report"}};
  verb.run = run_report;
  return verb;
}

}  // namespace rehearse::cli
