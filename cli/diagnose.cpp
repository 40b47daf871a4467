// SPDX-License-Identifier: Apache-2.0
// `rehearse diagnose`: the cause of a slow, hanging or failing run.
#include <fmt/format.h>

#include <boost/program_options/value_semantic.hpp>
#include <nlohmann/json.hpp>

#include "base/document.hpp"
#include "base/text.hpp"
#include "cli/case.hpp"
#include "cli/evidence_input.hpp"
#include "cli/scenario_options.hpp"
#include "cli/table.hpp"
#include "cli/verbs.hpp"
#include "faults/diagnose/logs.hpp"
#include "faults/diagnose/recorders.hpp"
#include "faults/diagnose/trace_stragglers.hpp"
#include "traces/import/import.hpp"
#include "validation/straggler_replay.hpp"

namespace rehearse::cli {
namespace {
namespace po = boost::program_options;

std::string score_of(const pb::Cause& cause) {
  return cause.simulated() ? fmt::format("{:.2f}", cause.score()) : "rules only";
}

std::string score_in_words(const pb::Cause& cause) {
  return cause.simulated() ? fmt::format("score {:.2f}", cause.score()) : "by rules, not simulated";
}

// ", rank 12,14" where the fault as used does not say so itself.
std::string who_of(const pb::Cause& cause) {
  if (cause.use().find(':') != std::string::npos) return {};
  std::vector<uint32_t> ranks;
  for (const pb::Culprit& culprit : cause.culprits()) {
    if (culprit.has_rank()) ranks.push_back(culprit.rank());
  }
  return ranks.empty() ? "" : fmt::format(", rank {}", format_ranks(ranks));
}

std::string place_in_words(const pb::Cause& cause) {
  return cause.elsewhere().empty() ? who_of(cause) : ", place not known";
}

// "D2.1 hang: unused parameters on one rank (F21:rank=11), score 1.00".
std::string headline_of(const pb::Diagnosis& diagnosis) {
  std::string symptom = diagnosis.symptom().id();
  if (diagnosis.symptom().label() != symptom) symptom += " " + diagnosis.symptom().label();
  if (diagnosis.symptom().id() == "healthy") return symptom;
  if (diagnosis.causes_size() == 0) return symptom + ": no fault of the catalogue explains this";
  const pb::Cause& best = diagnosis.causes(0);
  std::string what = fmt::format("{} ({})", best.name(), best.use());
  if (!best.together().empty() && diagnosis.causes_size() > 1) {
    const pb::Cause& second = diagnosis.causes(1);
    what += fmt::format(" and {} ({}) at once", second.name(), second.use());
  }
  return fmt::format("{}: {}{}{}, {}", symptom,
                     diagnosis.unknown() ? "unknown cause; nearest in the catalogue is " : "", what,
                     place_in_words(best), score_in_words(best));
}

std::string text_of(const pb::Diagnosis& diagnosis, const Terminal& terminal) {
  std::string out = terminal.styled(Style::kBold, headline_of(diagnosis)) + "\n";
  for (const std::string& reason : diagnosis.symptom().reasons())
    out += "  seen:    " + reason + "\n";
  if (diagnosis.causes_size() == 0) return fit(out, terminal.width());
  const pb::Cause& best = diagnosis.causes(0);
  if (best.alike_size() > 0) {
    const std::vector<std::string> alike(best.alike().begin(), best.alike().end());
    out += "  alike:   " + join_words(alike) + "\n";
  }
  if (best.elsewhere_size() > 0) {
    const std::vector<std::string> others(best.elsewhere().begin(), best.elsewhere().end());
    out += "  place:   not known; the same would be seen of " + join_words(others) + "\n";
  }
  for (const std::string& text : best.evidence()) out += "  for:     " + text + "\n";
  const bool two = diagnosis.causes_size() > 1 && !best.together().empty();
  if (two) {
    const pb::Cause& second = diagnosis.causes(1);
    out += fmt::format("  and:     {} ({})\n", second.name(), second.use());
    for (const std::string& text : second.evidence()) out += "    for:     " + text + "\n";
  }
  for (const std::string& text : best.against()) out += "  against: " + text + "\n";
  if (!diagnosis.straggler().empty()) out += "  late:    " + diagnosis.straggler() + "\n";
  for (const std::string& text : diagnosis.collect_next()) out += "  collect: " + text + "\n";
  if (diagnosis.causes_size() > 1) {
    Table others({{"also tried", Align::kLeft}, {"score", Align::kRight}, {"what", Align::kLeft}});
    for (int i = two ? 2 : 1; i < diagnosis.causes_size(); ++i) {
      const pb::Cause& cause = diagnosis.causes(i);
      others.add({cause.use(), score_of(cause), cause.name()});
    }
    out += "\n" + others.text(terminal);
  }
  return fit(out + fmt::format("\n{} runs simulated\n", diagnosis.simulations()), terminal.width());
}

// What dumps of the same job say of the ranks that the causes name.
void add_recorders(const EvidenceInput& input, pb::Diagnosis& diagnosis) {
  const auto blamed = faults::compare_recorders(input.logs.recorders);
  for (pb::Cause& cause : *diagnosis.mutable_causes()) {
    for (const faults::Diverging& row : blamed) {
      const bool named = std::any_of(
          cause.culprits().begin(), cause.culprits().end(),
          [&](const auto& culprit) { return culprit.has_rank() && culprit.rank() == row.rank; });
      std::string text = fmt::format("flight recorder: rank {} {}", row.rank, row.why);
      *(named ? cause.add_evidence() : cause.add_against()) = std::move(text);
    }
  }
}

// What logs of the same job say, by rules, for the causes.
void add_logs(const EvidenceInput& input, const faults::FaultCatalogue& catalogue,
              pb::Diagnosis& diagnosis) {
  faults::JobLogs logs = input.logs;
  logs.recorders.clear();
  const pb::Diagnosis told = faults::diagnose_by_rules(logs, catalogue);
  for (const std::string& reason : told.symptom().reasons()) {
    diagnosis.mutable_symptom()->add_reasons("logs: " + reason);
  }
  for (const pb::Cause& named : told.causes()) {
    for (pb::Cause& cause : *diagnosis.mutable_causes()) {
      if (cause.fault() != named.fault()) continue;
      for (const std::string& text : named.evidence()) cause.add_evidence("logs: " + text);
    }
  }
}

// What a step would take if every worker had the mean of its work, where the recording can be computed again.
void add_what_if(const traces::Trace& trace, pb::Diagnosis& diagnosis) {
  const auto steps = validation::recorded_steps(trace);
  if (!steps) return;
  const auto costs = validation::costs_of(*steps);
  const auto even_work = validation::mean_work(*steps);
  double as_is = 0, even = 0;
  for (const auto& step : *steps) {
    const auto now = validation::replayed(step, costs, validation::HostCosts::kNone, nullptr);
    const auto then = validation::replayed(step, costs, validation::HostCosts::kNone, &even_work);
    if (!now || !then) return;
    as_is += static_cast<double>(*now);
    even += static_cast<double>(*then);
  }
  if (even <= 0) return;
  diagnosis.mutable_symptom()->add_reasons(
      fmt::format("a step takes {:.3f} times as long as with every worker alike", as_is / even));
}

Result<pb::Diagnosis> diagnosis_of_trace(const EvidenceInput& input, Context& context) {
  RH_TRY(const faults::FaultCatalogue catalogue, fault_catalogue(context.arguments()));
  traces::ImportOptions options;
  options.clocks = traces::ClockAlignment::kAsRecorded;
  RH_TRY(const traces::Imported imported,
         traces::import_files(input.traces, options, context.reporter()));
  context.show(imported.findings);
  pb::Diagnosis diagnosis = faults::diagnose_trace(imported.trace, catalogue);
  add_what_if(imported.trace, diagnosis);
  return diagnosis;
}

Result<pb::Diagnosis> diagnosis_of(const EvidenceInput& input, Context& context) {
  if (!input.traces.empty()) return diagnosis_of_trace(input, context);
  if (!input.main.empty()) {
    RH_TRY(const Case what, load_case(context, input.main));
    RH_TRY(pb::Diagnosis diagnosis,
           diagnose(what, faults::simulated_world(context.reporter()), kMostRuns));
    add_recorders(input, diagnosis);
    add_logs(input, what.catalogue, diagnosis);
    return diagnosis;
  }
  RH_TRY(const faults::FaultCatalogue catalogue, fault_catalogue(context.arguments()));
  if (!context.has("scenario")) return faults::diagnose_by_rules(input.logs, catalogue);
  RH_TRY(const Case what, case_of_logs(context, input.logs));
  return diagnose(what, faults::simulated_world(context.reporter()), kMostRuns);
}

Result<int> run_diagnose(Context& context) {
  RH_TRY(const EvidenceInput input, sort_inputs(context));
  RH_TRY(const pb::Diagnosis diagnosis, diagnosis_of(input, context));
  const auto done = context.json()
                        ? context.print(to_json(diagnosis))
                        : context.print(std::string_view(text_of(diagnosis, context.terminal())));
  if (!done) return tl::unexpected(done.error());
  return diagnosis.symptom().id() == "healthy" ? 0 : 1;
}

}  // namespace

Verb diagnose_verb() {
  Verb verb;
  verb.name = "diagnose";
  verb.summary = "find the cause of a slow, hanging or failing run";
  verb.details =
      "Takes a scenario with edits, which is simulated, an outcome (`run --json`), flight recorder "
      "dumps, logs of ranks and "
      "recordings (files, or the folder of a job), or a scenario or outcome with dumps beside it. "
      "Faults of the "
      "catalogue that fit the symptom are simulated in the healthy scenario and compared with what "
      "was seen; what "
      "was injected is not looked at, the launch configuration is. Where one cause leaves "
      "something "
      "unexplained, two at once are tried. Dumps and logs alone are judged "
      "by rules; with --scenario, the job as it should be, causes are simulated and their logs and "
      "dumps compared with those found. Exit code 1: something is wrong.";
  verb.positionals = {
      {"EVIDENCE", "a scenario, an outcome (.json), dumps, logs and recordings", Count::kSome, {}}};
  verb.options = [](po::options_description& options) {
    add_scenario_options(options);
    options.add_options()("scenario", po::value<std::string>()->value_name("SCENARIO"),
                          "with an outcome, logs or dumps: the job as it should be");
  };
  verb.examples = {
      {"./rehearse diagnose ddp-16 --fault F16", "why one node's InfiniBand slows a job", 1},
      {"./rehearse diagnose ddp-16 --json", "a healthy job has no cause", 0}};
  verb.run = run_diagnose;
  return verb;
}

}  // namespace rehearse::cli
