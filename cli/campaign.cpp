// SPDX-License-Identifier: Apache-2.0
// `rehearse campaign`: faults injected at random places, diagnosed and repaired; how often that works.
#include "validation/blind/campaign.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/program_options/value_semantic.hpp>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/text.hpp"
#include "cli/scenario_options.hpp"
#include "cli/shard.hpp"
#include "cli/table.hpp"
#include "cli/verbs.hpp"

namespace rehearse {

const char* program_digest();  // cli/CMakeLists.txt

namespace cli {
namespace {
namespace po = boost::program_options;
using Json = nlohmann::ordered_json;
using validation::CampaignFigures;
using Runs = std::vector<pb::CampaignRun>;

std::map<std::string, Runs> by_fault(const Runs& runs) {
  std::map<std::string, Runs> out;
  for (const pb::CampaignRun& run : runs) {
    if (run.truth() == pb::CampaignRun::CATALOGUED) out[run.fault()].push_back(run);
  }
  return out;
}

// What the first cause was instead, with how often.
std::map<std::string, size_t> taken_for(const Runs& runs) {
  std::map<std::string, size_t> out;
  for (const pb::CampaignRun& run : runs) {
    if (!run.failed().empty() || run.silent() || (run.place() == 1 && !run.called_unknown()))
      continue;
    const std::string first = run.causes().empty()
                                  ? run.seen_symptom()
                                  : run.causes(0).substr(0, run.causes(0).find_first_of(": "));
    ++out[run.called_unknown() ? "unknown" : first];
  }
  return out;
}

// A figure of all runs that has a target (docs/faults.md), and those of faults that are simulated or found by a rule.
struct FigureRow {
  const char *name, *target;
  double CampaignFigures::*value;
  bool by_grade = true;  // it is one of faults of the catalogue
};
constexpr FigureRow kFigures[] = {
    {"symptom_accuracy", "0.99", &CampaignFigures::symptom},
    {"cause_top1", "0.85", &CampaignFigures::top1},
    {"cause_top3", "0.97", &CampaignFigures::top3},
    {"culprit_accuracy", "0.95", &CampaignFigures::culprit},
    {"fix_restores", "0.95", &CampaignFigures::fix},
    {"false_alarm_rate", "at most 0.01", &CampaignFigures::false_alarms, false},
    {"unknown_recall", "0.80", &CampaignFigures::unknown, false}};

Json json_of_grade(const Runs& runs) {
  const CampaignFigures figures = validation::figures_of(runs);
  Json out{{"n", figures.counted}};
  for (const FigureRow& row : kFigures) {
    if (row.by_grade) out[row.name] = figures.*row.value;
  }
  return out;
}

Json json_of(const Runs& runs, const validation::CampaignRequest& request) {
  const CampaignFigures all = validation::figures_of(runs);
  const auto [simulated, by_rule] = validation::by_grade(runs);
  Json out{{"schema", "rehearse.campaign/1"},
           {"runs", all.runs},
           {"symptom_accuracy", all.symptom},
           {"cause_top1", all.top1},
           {"cause_top3", all.top3},
           {"culprit_accuracy", all.culprit},
           {"fix_restores", all.fix},
           {"false_alarm_rate", all.false_alarms},
           {"unknown_recall", all.unknown},
           {"simulated", json_of_grade(simulated)},
           {"by_rule", json_of_grade(by_rule)},
           {"culprits", all.culprits},
           {"culprits_not_known", all.not_known},
           {"unlisted_symptoms", all.unlisted},
           {"redrawn",
            {{"unnoticed", all.redrawn},
             {"no_place", all.refused},
             {"hidden", all.hidden},
             {"silent", all.silent_draws}}},
           {"blind", request.blind},
           {"seed", request.seed},
           {"seeds", request.seeds},
           {"compound", request.compound},
           {"shard", fmt::format("{}/{}", request.part, request.parts)},
           {"healthy_runs", all.healthy},
           {"unknown_runs", all.outside},
           {"failed_runs", all.failed},
           {"silent_runs", all.silent},
           {"evidence", request.from_logs ? "logs" : "outcome"},
           {"top1_by_class", all.alike},
           {"simulations", all.simulations}};
  if (request.compound > 1) out["fix_in_turn_restores"] = all.in_turn;
  Json faults = Json::object();
  for (const auto& [fault, own] : by_fault(runs)) {
    const CampaignFigures figures = validation::figures_of(own);
    Json confused = Json::object();
    for (const auto& [other, times] : taken_for(own)) confused[other] = times;
    faults[fault] = {{"n", figures.counted},        {"failed", figures.failed},
                     {"silent", figures.silent},    {"symptom", figures.symptom},
                     {"top1", figures.top1},        {"top3", figures.top3},
                     {"culprit", figures.culprit},  {"fix", figures.fix},
                     {"redrawn", figures.redrawn},  {"unlisted", figures.unlisted},
                     {"no_place", figures.refused}, {"by_rule", own.front().by_rule()},
                     {"taken_for", confused}};
  }
  out["per_fault"] = std::move(faults);
  Json rows = Json::array();
  for (const pb::CampaignRun& run : runs) {
    Json row{{"fault", run.fault()},
             {"truth", lower_case(pb::CampaignRun::Truth_Name(run.truth()))},
             {"injected", run.use()},
             {"job", run.job()},
             {"redrawn", run.redrawn()},
             {"symptom", run.symptom()},
             {"unlisted", run.unlisted()},
             {"seen_symptom", run.seen_symptom()},
             {"unknown", run.called_unknown()},
             {"place", run.place()},
             {"causes", std::vector<std::string>(run.causes().begin(), run.causes().end())},
             {"for", std::vector<std::string>(run.evidence().begin(), run.evidence().end())},
             {"against", std::vector<std::string>(run.against().begin(), run.against().end())},
             {"simulations", run.simulations()}};
    if (run.has_culprit_right()) row["culprit"] = run.culprit_right();
    if (run.place_not_known()) row["culprit"] = "not known";
    if (run.has_fix_restores()) row["fix"] = run.fix_restores();
    if (run.has_restores_in_turn()) row["fix_in_turn"] = run.restores_in_turn();
    if (run.silent()) row["silent"] = true;
    if (!run.failed().empty()) row["failed"] = run.failed();
    rows.push_back(std::move(row));
  }
  out["rows"] = std::move(rows);
  return out;
}

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

std::string grade_text(const char* what, const Runs& runs) {
  const CampaignFigures figures = validation::figures_of(runs);
  if (figures.counted == 0) return {};
  return fmt::format(
      "  of {} {}: first {}, among three {}, symptom {}, culprit {}, first fix restores {}\n",
      figures.counted, what, percent(figures.top1), percent(figures.top3), percent(figures.symptom),
      percent(figures.culprit), percent(figures.fix));
}

// What was drawn again before something was found to diagnose.
std::string redrawn_text(const CampaignFigures& all) {
  std::string out;
  const auto say = [&](size_t count, const char* why) {
    if (count > 0) out += fmt::format("  {} draws {}, and were drawn again\n", count, why);
  };
  say(all.redrawn, "made no difference that anybody would notice");
  say(all.refused, "had no place in their job");
  say(all.hidden, "were hidden by another fault");
  say(all.silent_draws, "left nothing in logs");
  return out;
}

// The table of docs/faults.md.
std::string markdown_of(const Runs& runs) {
  const CampaignFigures all = validation::figures_of(runs);
  const auto [simulated, by_rule] = validation::by_grade(runs);
  const CampaignFigures of_simulated = validation::figures_of(simulated);
  const CampaignFigures of_rules = validation::figures_of(by_rule);
  std::string out = "| figure | target | all | simulated | by rule |\n|---|---|--:|--:|--:|\n";
  for (const FigureRow& row : kFigures) {
    out += fmt::format("| `{}` | {} | {:.3f} ", row.name, row.target, all.*row.value);
    out += row.by_grade
               ? fmt::format("| {:.3f} | {:.3f} |\n", of_simulated.*row.value, of_rules.*row.value)
               : "| | |\n";
  }
  out +=
      fmt::format("| runs | | {} | {} | {} |\n", all.runs, of_simulated.counted, of_rules.counted);
  out += fmt::format("| culprits right or wrong | | {} | {} | {} |\n", all.culprits,
                     of_simulated.culprits, of_rules.culprits);
  out += fmt::format("| culprits that nothing shows, said so | | {} | {} | {} |\n", all.not_known,
                     of_simulated.not_known, of_rules.not_known);
  out += fmt::format("| draws that nobody would notice | | {} | {} | {} |\n", all.redrawn,
                     of_simulated.redrawn, of_rules.redrawn);
  return out + fmt::format("| draws without a place in their job | | {} | {} | {} |\n", all.refused,
                           of_simulated.refused, of_rules.refused);
}

std::string text_of(const Runs& runs, const Terminal& terminal) {
  const CampaignFigures all = validation::figures_of(runs);
  const auto [simulated, by_rule] = validation::by_grade(runs);
  std::string out =
      terminal.styled(Style::kBold, fmt::format("{} runs: cause first in {}, among three in {}",
                                                all.runs, percent(all.top1), percent(all.top3)));
  out += fmt::format("\n  symptom right {}, culprit right {}, first fix restores {}\n",
                     percent(all.symptom), percent(all.culprit), percent(all.fix));
  if (std::any_of(runs.begin(), runs.end(),
                  [](const auto& run) { return run.has_restores_in_turn(); })) {
    out += fmt::format("  fixes one after the other, looking again between them, restore {}\n",
                       percent(all.in_turn));
  }
  out += grade_text("simulated", simulated) + grade_text("found by a rule", by_rule);
  if (all.healthy + all.outside > 0) {
    out += fmt::format(
        "  {} healthy jobs: false alarms {}; {} faults outside the catalogue: called unknown {}\n",
        all.healthy, percent(all.false_alarms), all.outside, percent(all.unknown));
  }
  if (all.silent > 0) {
    out += fmt::format("  {} runs leave nothing in logs and are not counted\n", all.silent);
  }
  if (all.failed > 0) out += fmt::format("  {} runs failed and are not counted\n", all.failed);
  if (all.unlisted > 0) {
    out += fmt::format("  {} runs have a symptom that the catalogue does not list: wrong\n",
                       all.unlisted);
  }
  if (all.not_known > 0) {
    out += fmt::format(
        "  {} runs have a culprit that nothing shows, and are said so: not counted as right or "
        "wrong\n",
        all.not_known);
  }
  out += redrawn_text(all);
  Table table({{"fault", Align::kLeft},
               {"runs", Align::kRight},
               {"first", Align::kRight},
               {"of three", Align::kRight},
               {"culprit", Align::kRight},
               {"fix", Align::kRight},
               {"redrawn", Align::kRight},
               {"taken for", Align::kLeft}});
  for (const auto& [fault, own] : by_fault(runs)) {
    const CampaignFigures figures = validation::figures_of(own);
    std::vector<std::string> others;
    for (const auto& [other, times] : taken_for(own)) {
      others.push_back(times > 1 ? fmt::format("{} x{}", other, times) : other);
    }
    if (figures.counted == 0 && figures.silent > 0) {
      table.add(
          {fault, "0", "-", "-", "-", "-", std::to_string(figures.redrawn), "nothing in logs"});
      continue;
    }
    table.add({fault, std::to_string(figures.counted), percent(figures.top1), percent(figures.top3),
               percent(figures.culprit), percent(figures.fix), std::to_string(figures.redrawn),
               join_words(others)});
  }
  return out + "\n" + table.text(terminal);
}

// The folder of -o, and what of the campaign is this process's.
Result<std::optional<validation::KeptRuns>> kept_runs(const Context& context,
                                                      const faults::FaultCatalogue& catalogue,
                                                      validation::CampaignRequest& request) {
  const auto folder = context.output();
  RH_TRY(const std::optional<Shard> shard, shard_of(context));
  request.only_kept = context.has("merge");
  if (request.only_kept && context.has("shard")) {
    return fail(Code::kUsage, "--merge and --shard exclude each other", "campaign",
                "a shard makes its runs, --merge shows those of all");
  }
  if (shard && !request.only_kept) {
    request.part = shard->index;
    request.parts = shard->count;
  }
  if (!folder && !request.only_kept) return std::nullopt;
  if (!folder) {
    return fail(Code::kUsage, "of which folder?", "--merge", "name it with -o");
  }
  RH_TRY(validation::KeptRuns kept,
         validation::KeptRuns::open(*folder, validation::identity_of(program_digest(), catalogue)));
  return kept;
}

Result<int> run_campaign_verb(Context& context) {
  RH_TRY(const auto catalogue, fault_catalogue(context.arguments()));
  validation::CampaignRequest request;
  if (const auto wanted = context.get<std::string>("faults"); wanted != "all") {
    request.faults = split(wanted, ',');
  }
  RH_TRY(const int64_t seeds, context.number("seeds", 1, 10000));
  RH_TRY(const int64_t seed, context.number("seed", 0, INT64_MAX));
  RH_TRY(const int64_t compound, context.number("compound", 1, 4));
  RH_TRY(const int64_t jobs, context.number("jobs", 1, 1024));
  request.seeds = static_cast<uint32_t>(seeds);
  request.seed = static_cast<uint64_t>(seed);
  request.compound = static_cast<uint32_t>(compound);
  request.jobs = static_cast<unsigned>(jobs);
  request.blind = context.has("blind");
  const auto evidence = context.get<std::string>("evidence");
  if (evidence != "outcome" && evidence != "logs") {
    return fail(Code::kUsage, fmt::format("'{}' is no kind of evidence", evidence), "--evidence",
                "outcome or logs");
  }
  request.from_logs = evidence == "logs";
  RH_TRY(const auto kept, kept_runs(context, catalogue, request));
  request.kept = kept ? &*kept : nullptr;
  RH_TRY(const Runs runs, validation::run_campaign(request, catalogue, context.reporter()));
  const auto done =
      context.json()
          ? context.print_stdout(json_of(runs, request))
          : context.print_stdout(std::string_view(
                context.has("markdown") ? markdown_of(runs) : text_of(runs, context.terminal())));
  if (!done) return tl::unexpected(done.error());
  return 0;
}

}  // namespace

Verb campaign_verb() {
  Verb verb;
  verb.name = "campaign";
  verb.summary = "inject faults at random places and measure the diagnosis";
  verb.details =
      "Every fault is injected at random places, with random strengths, into random jobs (DDP, "
      "FSDP, "
      "tensor and pipeline parallel, MoE, DLRM, Horovod, TensorFlow; 8 to 64 GPUs), diagnosed from "
      "what is "
      "observable, and the first fix is tried. With --blind the machine differs from the one "
      "of the model, measurements are noisy, ranks are missing, one fault of ten is not in the "
      "catalogue, and "
      "healthy jobs are among them. With --evidence logs the diagnosis gets nothing but what ranks "
      "printed, NCCL's log in it, and flight recorder dumps; faults that leave nothing there are "
      "not counted. The same seed gives the same runs. With -o every run is kept in a folder as it "
      "ends: a "
      "campaign that was stopped goes on where it was, --shard makes a part of it, here or "
      "elsewhere, and "
      "--merge shows what all parts found together, the same as without parts.";
  verb.options = [](po::options_description& options) {
    auto add = options.add_options();
    add("faults", po::value<std::string>()->default_value("all")->value_name("IDS"),
        "all, or some: F01,F02; with --blind also those outside the catalogue: U01");
    add("seeds", po::value<std::string>()->default_value("1")->value_name("N"),
        "runs of each fault");
    add("seed", po::value<std::string>()->default_value("1")->value_name("S"),
        "where random numbers begin");
    add("blind", "another machine, noise, unknown faults, healthy jobs");
    add("evidence", po::value<std::string>()->default_value("outcome")->value_name("KIND"),
        "diagnose from the outcome, or from logs and dumps alone: outcome, logs");
    add("markdown", "the figures as a table for documents");
    add("compound", po::value<std::string>()->default_value("1")->value_name("N"),
        "faults at once");
    add("shard", po::value<std::string>()->value_name("I/N"),
        "only every Nth run, from the Ith (default: from SLURM_ARRAY_TASK_ID, "
        "OMPI_COMM_WORLD_RANK, PMI_RANK or JOB_COMPLETION_INDEX)");
    add("merge", "make no run, show those that the shards kept");
    add("jobs",
        po::value<std::string>()
            ->default_value(std::to_string(std::max(1u, std::thread::hardware_concurrency())))
            ->value_name("N"),
        "runs at a time");
    add("catalogue", po::value<std::vector<std::string>>()->value_name("DIR"),
        "folder with faults of your own (repeatable)");
  };
  verb.writes = Writes::kFolder;
  verb.examples = {
      {"./rehearse campaign --faults F41 --seed 3", "one fault, once", 0},
      {"./rehearse campaign --faults F41 --seeds 2 --shard 0/2 -o places", "one of two places", 0},
      {"./rehearse campaign --faults F41 --seeds 2 --shard 1/2 -o places", "the other", 0},
      {"./rehearse campaign --faults F41 --seeds 2 --merge -o places", "both together", 0}};
  verb.run = run_campaign_verb;
  return verb;
}

}  // namespace cli
}  // namespace rehearse
