// SPDX-License-Identifier: Apache-2.0
// `rehearse fix`: fixes tried in simulation, ranked by what they recover.
#include "faults/fix/fix.hpp"

#include <fmt/format.h>

#include <boost/program_options/value_semantic.hpp>
#include <nlohmann/json.hpp>

#include "base/document.hpp"
#include "base/units.hpp"
#include "cli/case.hpp"
#include "cli/draws_option.hpp"
#include "cli/evidence_input.hpp"
#include "cli/outcome_file.hpp"
#include "cli/scenario_options.hpp"
#include "cli/table.hpp"
#include "cli/verbs.hpp"
#include "faults/diagnose/observable.hpp"
#include "faults/fix/own.hpp"
#include "faults/symptoms/classifier.hpp"

namespace rehearse::cli {
namespace {
namespace po = boost::program_options;

constexpr int kDrawnFixes = 3;      // the best ones get a range
constexpr uint32_t kFixDraws = 20;  // unless --draws says otherwise

std::string step_of(const pb::FixTrial& fix) {
  return fix.has_step_time_ns() ? format_duration(fix.step_time_ns()) : "no whole step";
}

std::string whole_step(bool has, Nanos time) {
  return has ? format_duration(time) : "no whole step";
}

std::string headline(const pb::FixReport& report) {
  if (report.fixes_size() == 0) {
    return report.symptom().id() == faults::kHealthy
               ? "nothing is wrong with this job: no fix was tried"
               : "no fix in the catalogue";
  }
  const pb::FixTrial& best = report.fixes(0);
  const std::string before =
      whole_step(report.has_broken_step_time_ns(), report.broken_step_time_ns());
  if (!best.refused().empty()) return fmt::format("no fix could be tried: {}", best.refused());
  std::string verdict;
  if (!best.false_fix().empty()) {
    verdict = " (a false fix: " + best.false_fix() + ")";
  } else if (!best.restores()) {
    verdict =
        fmt::format(" (does not restore the baseline of {})",
                    whole_step(report.has_baseline_step_time_ns(), report.baseline_step_time_ns()));
  }
  return fmt::format("step time {} -> {}: {}{}", before, step_of(best), best.change(), verdict);
}

std::string text_of(const pb::FixReport& report, const Terminal& terminal) {
  std::string out = terminal.styled(Style::kBold, headline(report)) + "\n";
  if (report.fixes_size() == 0) return fit(out, terminal.width());
  Table table({{"against", Align::kLeft},
               {"step time", Align::kRight},
               {"recovered", Align::kRight},
               {"restores", Align::kLeft},
               {"certainty", Align::kLeft},
               {"in study", Align::kRight},
               {"change", Align::kLeft}});
  std::string notes;
  int row = 0;
  for (const pb::FixTrial& fix : report.fixes()) {
    ++row;
    const bool counterfeit = !fix.false_fix().empty();
    table.add({fix.own() ? "your fix" : fix.use(), step_of(fix),
               fix.has_recovered_ns() ? format_duration(fix.recovered_ns()) : "-",
               fix.restores() ? "yes"
               : counterfeit  ? "false fix"
                              : "no",
               fix.band(), std::to_string(fix.paper_count()),
               fix.refused().empty() ? fix.change()
                                     : fix.change() + " (not tried: " + fix.refused() + ")"});
    const auto note = [&](const std::string& text) {
      notes += fmt::format("row {}: {}\n", row, text);
    };
    if (counterfeit) note("false fix: " + fix.false_fix());
    if (fix.refused().empty() && !fix.restores() && !counterfeit && !fix.symptom().id().empty() &&
        fix.symptom().id() != faults::kHealthy) {
      note(fmt::format("still {} {}", fix.symptom().id(), fix.symptom().label()));
    }
    for (const std::string& part : fix.alone()) note(part);
    for (const std::string& effect : fix.side_effects()) note("side effect: " + effect);
  }
  return fit(out + "\n" + table.text(terminal) + (notes.empty() ? "" : "\n" + notes),
             terminal.width());
}

Result<std::vector<faults::OwnFix>> own_fixes(const Context& context) {
  std::vector<faults::OwnFix> out;
  if (!context.has("verify")) return out;
  // Written several times, they belong together.
  faults::OwnFix& own = out.emplace_back();
  for (const std::string& text : context.get<std::vector<std::string>>("verify")) {
    RH_TRY(pb::Patch patch, faults::parse_own_fix(text));
    own.text += (own.text.empty() ? "" : "; ") + text;
    own.patches.push_back(std::move(patch));
  }
  return out;
}

// Causes, likeliest first; those of one group are there together.
using Causes = std::vector<std::vector<faults::FaultUse>>;

// The causes given, or those that diagnosis finds likely.
Result<Causes> causes_of(const Case& what, Context& context) {
  if (!context.has("cause")) {
    RH_TRY(const pb::Diagnosis diagnosis,
           diagnose(what, faults::simulated_world(context.reporter()), kMostRuns));
    return likely_causes(diagnosis, what.catalogue);
  }
  Causes out;
  for (const std::string& text : context.get<std::vector<std::string>>("cause")) {
    RH_TRY(faults::FaultUse use, faults::parse_fault(text, what.catalogue, what.healthy.document));
    out.push_back({std::move(use)});
  }
  return out;
}

// The job with causes in it, where only evidence of the broken one is there.
Result<sim::Scenario> with_causes(const Case& what, const std::vector<faults::FaultUse>& causes) {
  sim::Scenario broken = what.healthy;
  for (const faults::FaultUse& cause : causes) {
    RH_TRY(const auto patches, faults::patches_of(cause, broken.document));
    for (const pb::Patch& patch : patches) {
      if (auto done = sim::apply(broken, patch); !done) return tl::unexpected(done.error());
    }
  }
  return broken;
}

// What a repaired job still shows, where it is simulated from the scenario itself: a job that causes were put into has no other.
faults::LookAgain look_again(const Case& what, Context& context) {
  if (!what.broken || context.has("cause")) return {};
  return [&what, &context](const sim::Scenario& repaired,
                           const pb::Outcome& outcome) -> Result<std::vector<faults::FaultUse>> {
    Case left = what;
    left.broken = repaired;
    left.evidence = faults::observable(outcome);
    *left.evidence.mutable_baseline_step_time_ns() = what.baseline.step_time_ns();
    RH_TRY(const pb::Diagnosis diagnosis,
           diagnose(left, faults::simulated_world(context.reporter()), kMostRuns));
    RH_TRY(const Causes causes, likely_causes(diagnosis, what.catalogue));
    std::vector<faults::FaultUse> out;
    for (const auto& group : causes) out.insert(out.end(), group.begin(), group.end());
    return out;
  };
}

Result<pb::FixReport> report_of(const Case& what, const sim::Scenario& broken,
                                std::span<const faults::FaultUse> causes,
                                std::span<const faults::OwnFix> own, Context& context) {
  RH_TRY(const auto categories, faults::Categories::load_shipped());
  RH_TRY(pb::FixReport report, faults::try_fixes({.broken = broken,
                                                  .outcome = what.evidence,
                                                  .baseline = what.baseline,
                                                  .candidates = causes,
                                                  .categories = categories,
                                                  .own = own,
                                                  .look_again = look_again(what, context)},
                                                 faults::simulated_world(context.reporter())));
  RH_TRY(const auto drawing, asked_draws(context, what.calibration, what.healthy.document));
  if (drawing) {
    if (auto done = validation::add_certainty(broken, *drawing, what.broken ? kDrawnFixes : 1,
                                              context.reporter(), report);
        !done) {
      return tl::unexpected(done.error());
    }
  }
  return report;
}

Result<pb::FixReport> all_fixes(const Case& what, Context& context) {
  RH_TRY(const auto own, own_fixes(context));
  pb::Outcome evidence = what.evidence;
  const bool healthy = faults::classify(evidence).id() == faults::kHealthy;
  if (what.broken && (healthy || !own.empty()) && !context.has("cause")) {
    return report_of(what, *what.broken, {}, own, context);
  }
  RH_TRY(const Causes causes, causes_of(what, context));
  if (what.broken) {
    std::vector<faults::FaultUse> all;
    for (const auto& group : causes) all.insert(all.end(), group.begin(), group.end());
    return report_of(what, *what.broken, all, own, context);
  }
  if (causes.empty()) return report_of(what, what.healthy, {}, {}, context);
  pb::FixReport report;
  for (const auto& group : causes) {
    RH_TRY(const sim::Scenario broken, with_causes(what, group));
    // Logs tell no times: what is repaired is the job with the cause in it, as simulated.
    Case with_cause = what;
    if (what.logs) {
      RH_TRY(with_cause.evidence, faults::simulated_world(context.reporter()).simulate(broken));
    }
    RH_TRY(pb::FixReport one, report_of(with_cause, broken, group, own, context));
    faults::add_fixes(std::move(one), report);
  }
  return report;
}

Result<Case> case_of_input(Context& context) {
  if (is_outcome_file(context.inputs().front())) return load_case(context);
  RH_TRY(EvidenceInput input, sort_inputs(context));
  if (!input.main.empty()) return load_case(context, input.main);
  if (!input.traces.empty()) {
    return fail(Code::kBadInput, "a recording alone is no broken job", context.inputs().front(),
                "`diagnose` tells its stragglers; give a scenario of it with what is wrong");
  }
  return case_of_logs(context, std::move(input.logs));
}

Result<int> run_fix(Context& context) {
  RH_TRY(const Case what, case_of_input(context));
  RH_TRY(const pb::FixReport report, all_fixes(what, context));
  auto done = context.json() ? context.print(to_json(report))
                             : context.print(std::string_view(text_of(report, context.terminal())));
  const bool failed =
      context.has("verify") && report.fixes_size() > 0 && !report.fixes(0).restores();
  return exit_code(std::move(done), failed ? static_cast<int>(Code::kFinding) : 0);
}

}  // namespace

Verb fix_verb() {
  Verb verb;
  verb.name = "fix";
  verb.summary = "try fixes in simulation and rank them by time recovered";
  verb.details =
      "Diagnoses the scenario with its edits, or evidence of a run (what `diagnose` takes), "
      "applies "
      "the fixes of the likely causes, two of them together where none alone is enough, and "
      "simulates each. Where that does not restore the job, what the best fix leaves is diagnosed "
      "again and repaired on top of it. A fix restores when the symptom is gone and the step time "
      "is not more than "
      "2 % above the healthy job's. A false fix only looks like one: it leaves out work, gives "
      "wrong data, or waits longer for what never comes. The certainty is over joint draws of "
      "calibrated parameters (--patch-file) or priors, with what predictions of that kind of "
      "change were off by; 'unvalidated' where no measured change supports it.\n\n"
      "--verify checks a fix of your own instead; exit code 1: it does not restore the job.";
  verb.positionals = {
      {"SCENARIO|EVIDENCE",
       "a scenario, broken with --set, --fault or --patch; an outcome (.json); or, with "
       "--scenario, logs and dumps of a job",
       Count::kOne,
       {}}};
  verb.options = [](po::options_description& options) {
    add_scenario_options(options);
    auto add = options.add_options();
    add("cause", po::value<std::vector<std::string>>()->value_name("ID[:KEY=VALUE,...]"),
        "try the fixes of this fault instead of diagnosing (repeatable)");
    add("verify", po::value<std::vector<std::string>>()->value_name("CHANGE"),
        "check this change: NAME=VALUE of every rank's environment, 'node 1: NAME=VALUE', a path "
        "as in --set or a patch as in --patch; several belong together");
    add("scenario", po::value<std::string>()->value_name("SCENARIO"),
        "with evidence: the job as it should be");
    add_draws_option(options, kFixDraws);
  };
  verb.examples = {
      {"./rehearse fix ddp-16 --fault F16", "what to change, and what it gives back", 0},
      {"./rehearse fix ddp-16", "a healthy job needs none", 0},
      {"./rehearse fix ddp-16 --fault F16 --verify 'node 1: NCCL_IB_DISABLE=0' --draws 0",
       "will my change do?", 0},
      {"./rehearse fix ddp-16 --fault F21 --verify NCCL_TIMEOUT=7200 --draws 0",
       "waiting longer is no fix", 1},
      {"./rehearse run ddp-16 --fault F37 --json -o slow.json", "evidence of a run", 0},
      {"./rehearse fix slow.json --draws 8", "fixes of what it most likely shows", 0},
      {"./rehearse run ddp-16 --fault F21 --nccl-log job --flight-recorder job", "what ranks leave",
       0},
      {"./rehearse fix job --scenario ddp-16 --draws 0", "fixes of what logs and dumps show", 0}};
  verb.run = run_fix;
  return verb;
}

}  // namespace rehearse::cli
