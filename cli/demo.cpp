// SPDX-License-Identifier: Apache-2.0
// `rehearse demo`: the two-minute story on shipped data. Nothing is scripted: every figure is read off an
// outcome simulated here and now, the cause is found by the diagnosis, the fix is tried.
#include <fmt/format.h>

#include <boost/program_options/value_semantic.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/document.hpp"
#include "base/units.hpp"
#include "cli/context.hpp"
#include "cli/outcome_text.hpp"
#include "cli/report/report.hpp"
#include "cli/table.hpp"
#include "cli/verbs.hpp"
#include "faults/diagnose/diagnose.hpp"
#include "faults/fix/fix.hpp"
#include "faults/symptoms/classifier.hpp"
#include "faults/world.hpp"
#include "sim/outcome/pictures.hpp"

namespace rehearse::cli {
namespace {

namespace po = boost::program_options;
namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* kScenario = "ddp-16";
constexpr const char* kSlowFault = "F16";
constexpr const char* kHangFault = "F21:rank=11,nth=7";

// One act: what was run, and what was found out about it.
struct Act {
  std::string name;  // also the name of its file
  std::string title;
  pb::Outcome outcome;
  std::optional<pb::Diagnosis> diagnosis;
  std::optional<pb::FixReport> fixes;
  std::optional<pb::FixTrial> fix;  // the best of them
};

struct Stage {
  const sim::Scenario& healthy;
  const faults::FaultCatalogue& catalogue;
  const faults::Categories& categories;
  const faults::World& world;
  const faults::Rules& rules;
  Reporter& reporter;
};

Result<pb::Outcome> simulate(const Stage& stage, const sim::Scenario& scenario,
                             const pb::Outcome* baseline) {
  RH_TRY(pb::Outcome outcome,
         faults::simulate_judged(scenario, sim::Detail::kPictures, stage.rules, stage.reporter));
  if (baseline != nullptr) *outcome.mutable_baseline_step_time_ns() = baseline->step_time_ns();
  *outcome.mutable_symptom() = faults::classify(outcome);
  return outcome;
}

// Breaks the job, looks for the cause without being told, and tries the fixes of what was found.
Result<Act> break_and_repair(const Stage& stage, const pb::Outcome& baseline, const char* fault) {
  RH_TRY(faults::FaultUse use, faults::parse_fault(fault, stage.catalogue));
  RH_TRY(std::vector<pb::Patch> patches, faults::patches_of(use, stage.healthy.document));
  sim::Scenario broken = stage.healthy;
  for (const pb::Patch& patch : patches) {
    if (auto applied = stage.world.apply(broken, patch); !applied) {
      return tl::unexpected(applied.error());
    }
  }
  Act act;
  RH_TRY(act.outcome, simulate(stage, broken, &baseline));
  const faults::DiagnoseRequest request{act.outcome, stage.healthy, &broken.document.launch(),
                                        &baseline};
  RH_TRY(act.diagnosis, faults::diagnose(request, stage.catalogue, stage.world));
  std::vector<faults::FaultUse> candidates;
  for (const pb::Cause& cause : act.diagnosis->causes()) {
    if (candidates.size() == 3) break;
    RH_TRY(faults::FaultUse found, faults::parse_fault(cause.use(), stage.catalogue));
    candidates.push_back(std::move(found));
  }
  RH_TRY(act.fixes, faults::try_fixes({broken, act.outcome, baseline, candidates, stage.categories},
                                      stage.world));
  if (act.fixes->fixes_size() > 0) act.fix = act.fixes->fixes(0);
  act.outcome.add_command("rehearse");
  for (const char* word : {"run", kScenario, "--fault", fault}) act.outcome.add_command(word);
  return act;
}

Json to_document(const Act& act) {
  Json json = to_json(act.outcome);
  json["act"] = act.name;
  json["title"] = act.title;
  if (act.diagnosis && act.diagnosis->causes_size() > 0) {
    json["cause"] = to_json(act.diagnosis->causes(0));
  }
  if (act.fix) {
    json["fix"] = to_json(*act.fix);
    if (act.fix->has_recovered_ns()) json["recovered_ns"] = act.fix->recovered_ns();
  }
  return json;
}

std::string heading(const Terminal& terminal, const std::string& text) {
  return terminal.styled(Style::kBold, text) + "\n";
}

// What one rank's profile shows, healthy and broken.
std::string seen_from_ranks(const pb::Outcome& healthy, const pb::Outcome& broken,
                            const Terminal& terminal) {
  Table table({{"seen from"},
               {"compute", Align::kRight},
               {"exposed communication", Align::kRight},
               {"hidden communication", Align::kRight},
               {"waiting", Align::kRight}});
  const auto row = [&](const std::string& who, const pb::RankBreakdown& rank) {
    table.add({who, format_duration(rank.compute()), format_duration(rank.communication()),
               format_duration(rank.overlapped()), format_duration(rank.wait())});
  };
  const int last = broken.breakdown_size() - 1;
  if (last < 0 || healthy.breakdown_size() <= last) return "";
  row("rank 0, healthy", healthy.breakdown(0));
  row("rank 0, now", broken.breakdown(0));
  row(fmt::format("rank {}, now", last), broken.breakdown(last));
  std::string out = table.text(terminal);
  for (const pb::CommunicatorUse& use : broken.communicators()) {
    if (use.transport() == use.offered()) continue;
    out += fmt::format("NCCL uses {} where {} is offered; bus bandwidth {}\n", use.transport(),
                       use.offered(), format_bandwidth(use.busbw()));
    break;
  }
  return out;
}

std::string cause_and_fix(const Act& act, const Terminal& terminal) {
  std::string out;
  if (act.diagnosis->causes_size() == 0) {
    out += "no known fault explains this\n";
  } else {
    const pb::Cause& cause = act.diagnosis->causes(0);
    out += terminal.styled(Style::kBold, "cause: ") +
           fmt::format("{} ({}), score {:.2f} after {} simulations\n", cause.name(), cause.use(),
                       cause.score(), act.diagnosis->simulations());
    for (const std::string& evidence : cause.evidence()) out += "  for: " + evidence + "\n";
    for (const std::string& against : cause.against()) out += "  against: " + against + "\n";
  }
  if (!act.fix) return out + "no fix was found\n";
  const pb::FixTrial& fix = *act.fix;
  out += terminal.styled(Style::kBold, "fix tried: ") + fix.change() + "\n";
  if (fix.has_step_time_ns()) {
    out += fmt::format("  step time with the fix: {}", format_duration(fix.step_time_ns()));
    if (fix.has_recovered_ns()) {
      out += fmt::format(", {} recovered per step", format_duration(fix.recovered_ns()));
    }
    out += fmt::format("; {} (error band: {})\n",
                       fix.restores() ? "the job is healthy again" : "not restored", fix.band());
  }
  return out;
}

// The acts side by side.
Result<std::string> report_page(const std::vector<Act>& acts) {
  Report report;
  for (const Act& act : acts) {
    ReportRun& run = report.runs.emplace_back();
    run.name = run.file = act.name;
    run.file += ".json";
    run.outcome = act.outcome;
    if (!act.outcome.pictures().empty()) {
      RH_TRY(run.pictures, sim::unpacked_pictures(act.outcome.pictures(), act.name));
    }
    run.diagnosis = act.diagnosis;
    run.fixes = act.fixes;
  }
  return report_html(std::move(report));
}

Result<void> write_files(const fs::path& folder, const std::vector<Act>& acts) {
  std::error_code ec;
  fs::create_directories(folder, ec);
  if (ec) return fail(Code::kIo, "cannot create the folder: " + ec.message(), folder.string());
  for (const Act& act : acts) {
    const std::string text = to_json(act.outcome).dump(2) + "\n";
    if (auto written = write_file(folder / (act.name + ".json"), text, Overwrite::kReplace);
        !written) {
      return written;
    }
  }
  RH_TRY(const std::string page, report_page(acts));
  return write_file(folder / "report.html", page, Overwrite::kReplace);
}

std::string story(const std::vector<Act>& acts, const fs::path& folder, const Terminal& terminal) {
  std::string out;
  const pb::Outcome& healthy = acts[0].outcome;
  out += heading(terminal, "Act 1: the healthy job");
  out += fmt::format(
      "{} ranks on {}; the trace is synthetic (rehearse synth), the cluster simulated\n",
      healthy.ranks(), healthy.platform());
  out += outcome_text(healthy, terminal);
  out += "\n" + heading(terminal, "Act 2: since this morning it is slow");
  out += outcome_head(acts[1].outcome, terminal);
  out += seen_from_ranks(healthy, acts[1].outcome, terminal);
  out += cause_and_fix(acts[1], terminal);
  out += "\n" + heading(terminal, "Act 3: and now it hangs");
  out += outcome_text(acts[2].outcome, terminal);
  out += cause_and_fix(acts[2], terminal);
  out += fmt::format("\noutcomes are in {}/: ", folder.string());
  for (const Act& act : acts) out += act.name + ".json ";
  out +=
      fmt::format("\nopen {} in a browser to see all of this\n", (folder / "report.html").string());
  out += "\n" + heading(terminal, "Try next");
  out += "  ./rehearse run gpt-32 --patch 'slow-rank: {rank: 6, slowdown: 1.5}'\n";
  out += "  ./rehearse fix ddp-16 --fault F16\n";
  out += "  ./rehearse faults\n";
  return out;
}

Result<int> run_demo(Context& context) {
  RH_TRY(sim::Scenario healthy, sim::load_scenario(kScenario, context.reporter()));
  RH_TRY(faults::FaultCatalogue catalogue, faults::FaultCatalogue::load_shipped());
  RH_TRY(faults::Categories categories, faults::Categories::load_shipped());
  const faults::World world = faults::simulated_world(context.reporter());
  RH_TRY(const faults::Rules rules, faults::Rules::load_shipped());
  const Stage stage{healthy, catalogue, categories, world, rules, context.reporter()};

  std::vector<Act> acts(1);
  acts[0].name = "healthy";
  acts[0].title = "the healthy job";
  RH_TRY(acts[0].outcome, simulate(stage, healthy, nullptr));
  for (const char* word : {"rehearse", "run", kScenario}) acts[0].outcome.add_command(word);
  RH_TRY(Act slow, break_and_repair(stage, acts[0].outcome, kSlowFault));
  slow.name = "slow";
  slow.title = "one node cannot use InfiniBand";
  acts.push_back(std::move(slow));
  RH_TRY(Act hang, break_and_repair(stage, acts[0].outcome, kHangFault));
  hang.name = "hang";
  hang.title = "one rank skips a collective";
  acts.push_back(std::move(hang));

  if (context.json()) {
    Json document = {{"schema", "rehearse.demo/1"}, {"acts", Json::array()}};
    for (const Act& act : acts) document["acts"].push_back(to_document(act));
    return exit_code(context.print(document));
  }
  const fs::path folder = context.get<std::string>("folder");
  if (auto written = write_files(folder, acts); !written) return tl::unexpected(written.error());
  return exit_code(context.print(std::string_view(story(acts, folder, context.terminal()))));
}

}  // namespace

Verb demo_verb() {
  return {
      .name = "demo",
      .summary = "the story in a minute: a healthy job, a fault, its cause, the fix; then a hang",
      .details =
          "Runs a shipped job of 2 nodes with 8 GPUs each in simulation, takes InfiniBand away "
          "from "
          "one node, finds the cause and tries the fix; then lets one rank skip a collective and "
          "shows who waits for whom. The trace is synthetic; every figure is simulated on the "
          "spot.",
      .positionals = {},
      .options =
          [](po::options_description& options) {
            options.add_options()("folder",
                                  po::value<std::string>()->default_value("rehearse-demo"),
                                  "folder for the outcomes (not written with --json)");
          },
      .writes = Writes::kNothing,
      .examples = {{"./rehearse demo", "the story", 0},
                   {"./rehearse demo --json", "its acts as JSON, schema rehearse.demo/1", 0}},
      .run = run_demo,
  };
}

}  // namespace rehearse::cli
