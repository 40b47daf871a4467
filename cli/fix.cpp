// SPDX-License-Identifier: Apache-2.0
// `rehearse fix`: fixes tried in simulation, ranked by what they recover.
#include "faults/fix/fix.hpp"

#include <fmt/format.h>

#include <boost/program_options/value_semantic.hpp>
#include <nlohmann/json.hpp>

#include "base/document.hpp"
#include "base/units.hpp"
#include "cli/case.hpp"
#include "cli/scenario_options.hpp"
#include "cli/table.hpp"
#include "cli/verbs.hpp"

namespace rehearse::cli {
namespace {
namespace po = boost::program_options;

constexpr int kCausesTried = 5;
constexpr double kUnlikely = 0.2;  // score below which the fixes of a cause are not tried

std::string step_of(const pb::FixTrial& fix) {
  return fix.has_step_time_ns() ? format_duration(fix.step_time_ns()) : "no whole step";
}

std::string headline(const pb::FixReport& report, bool broken) {
  if (!broken) return "nothing is wrong with this job: no fix was tried";
  if (report.fixes_size() == 0) return "no fix in the catalogue";
  const pb::FixTrial& best = report.fixes(0);
  const std::string before = report.has_broken_step_time_ns()
                                 ? format_duration(report.broken_step_time_ns())
                                 : "no whole step";
  return fmt::format("step time {} -> {}: {}{}", before, step_of(best), best.change(),
                     best.restores() ? "" : " (does not restore the baseline)");
}

std::string text_of(const pb::FixReport& report, bool broken, const Terminal& terminal) {
  std::string out = terminal.styled(Style::kBold, headline(report, broken)) + "\n";
  if (report.fixes_size() == 0) return out;
  Table table({{"against", Align::kLeft},
               {"step time", Align::kRight},
               {"recovered", Align::kRight},
               {"restores", Align::kLeft},
               {"certainty", Align::kLeft},
               {"in study", Align::kRight},
               {"change", Align::kLeft}});
  for (const pb::FixTrial& fix : report.fixes()) {
    table.add({fix.use(), step_of(fix),
               fix.has_recovered_ns() ? format_duration(fix.recovered_ns()) : "-",
               fix.restores() ? "yes" : "no", fix.band(), std::to_string(fix.paper_count()),
               fix.refused().empty() ? fix.change()
                                     : fix.change() + " (not tried: " + fix.refused() + ")"});
  }
  return out + "\n" + table.text(terminal);
}

// The causes given, or those that diagnosis finds likely.
struct Candidates {
  std::vector<faults::FaultUse> uses;
  bool broken = true;  // false: the diagnosis finds nothing wrong
};

Result<Candidates> candidates(const Case& what, Context& context) {
  Candidates found;
  auto& uses = found.uses;
  if (context.has("cause")) {
    for (const std::string& text : context.get<std::vector<std::string>>("cause")) {
      RH_TRY(faults::FaultUse use, faults::parse_fault(text, what.catalogue));
      uses.push_back(std::move(use));
    }
    return found;
  }
  RH_TRY(const pb::Diagnosis diagnosis, diagnose(what, context));
  found.broken = diagnosis.symptom().id() != "healthy";
  for (const pb::Cause& cause : diagnosis.causes()) {
    if (static_cast<int>(uses.size()) >= kCausesTried || cause.score() < kUnlikely) break;
    RH_TRY(faults::FaultUse use, faults::parse_fault(cause.use(), what.catalogue));
    uses.push_back(std::move(use));
  }
  return found;
}

Result<int> run_fix(Context& context) {
  RH_TRY(const Case what, load_case(context));
  if (!what.broken) {
    return fail(Code::kUsage, "an outcome cannot be changed", context.inputs().front(),
                "give the scenario with the edits that broke it");
  }
  RH_TRY(const auto categories, faults::Categories::load_shipped());
  RH_TRY(const Candidates tried, candidates(what, context));
  RH_TRY(const pb::FixReport report,
         faults::try_fixes({.broken = *what.broken,
                            .outcome = what.evidence,
                            .baseline = what.baseline,
                            .candidates = tried.uses,
                            .categories = categories},
                           faults::simulated_world(context.reporter())));
  const auto done =
      context.json()
          ? context.print(to_json(report))
          : context.print(std::string_view(text_of(report, tried.broken, context.terminal())));
  if (!done) return tl::unexpected(done.error());
  return 0;
}

}  // namespace

Verb fix_verb() {
  Verb verb;
  verb.name = "fix";
  verb.summary = "try fixes in simulation and rank them by time recovered";
  verb.details =
      "Diagnoses the scenario with its edits, applies the fixes of the likely causes and simulates "
      "each. "
      "A fix restores when the symptom is gone and the step time is within 2 % of the healthy "
      "job's.";
  verb.positionals = {
      {"SCENARIO", "a scenario; break it with --set, --fault or --patch", Count::kOne, {}}};
  verb.options = [](po::options_description& options) {
    add_scenario_options(options);
    options.add_options()("cause",
                          po::value<std::vector<std::string>>()->value_name("ID[:KEY=VALUE,...]"),
                          "try the fixes of this fault instead of diagnosing (repeatable)");
  };
  verb.examples = {
      {"./rehearse fix ddp-16 --fault F16", "what to change, and what it gives back", 0},
      {"./rehearse fix ddp-16", "a healthy job needs none", 0}};
  verb.run = run_fix;
  return verb;
}

}  // namespace rehearse::cli
