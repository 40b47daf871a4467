// SPDX-License-Identifier: Apache-2.0
// `rehearse run`: one scenario, simulated.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/document.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "cli/context.hpp"
#include "cli/draws_option.hpp"
#include "cli/outcome_text.hpp"
#include "cli/scenario_options.hpp"
#include "cli/scenario_view.hpp"
#include "cli/table.hpp"
#include "cli/verbs.hpp"
#include "faults/diagnose/job_logs.hpp"
#include "sim/export/export.hpp"
#include "sim/outcome/pictures.hpp"
#include "traces/export/flight_recorder.hpp"

namespace rehearse::cli {
namespace {
namespace po = boost::program_options;
using Json = nlohmann::ordered_json;

Result<void> list_scenarios(Context& context) {
  RH_TRY(const auto scenarios, sim::shipped_scenarios());
  if (context.json()) {
    Json rows = Json::array();
    for (const auto& s : scenarios)
      rows.push_back({{"name", s.name}, {"description", s.description}});
    return context.print(Json{{"schema", "rehearse.scenarios/1"}, {"scenarios", rows}});
  }
  Table table({{"scenario"}, {"what it is"}});
  for (const auto& s : scenarios) table.add({s.name, s.description});
  return context.print(std::string_view(table.text(context.terminal())));
}

Result<void> check_expected(const std::string& word) {
  std::vector<std::string> known;
  for (int v = pb::COMPLETED; v <= pb::REJECTED; ++v) {
    known.push_back(verdict_name(static_cast<pb::Verdict>(v)));
  }
  if (std::ranges::find(known, word) != known.end()) return {};
  return fail(Code::kUsage, fmt::format("'{}' is not a verdict", word), "--expect",
              "one of " + join_words(known));
}

// One file per rank in the folder of an option.
Result<void> write_to_folder(Context& context, const char* option, const std::string& name,
                             const std::string& text) {
  const std::filesystem::path folder = context.get<std::string>(option);
  std::error_code ec;
  std::filesystem::create_directories(folder, ec);
  if (ec) {
    return fail(Code::kIo, "cannot create the folder: " + ec.message(), folder.string(),
                fmt::format("give --{} a folder that can be written", option));
  }
  return write_file((folder / name).string(), text, context.overwrite());
}

// What the ranks themselves would have left behind.
Result<void> write_logs(Context& context, const sim::Scenario& scenario,
                        const pb::Outcome& outcome) {
  if (context.has("nccl-log")) {
    RH_TRY(auto files, faults::log_files(scenario, outcome));
    std::erase_if(files, [](const auto& file) { return !file.first.ends_with(".log"); });
    // Of a process without a word an empty file is there, unless none has any.
    const bool silent = std::all_of(files.begin(), files.end(),
                                    [](const auto& file) { return file.second.empty(); });
    for (const auto& [name, text] : files) {
      if (silent) break;
      if (auto done = write_to_folder(context, "nccl-log", "nccl-" + name, text); !done)
        return done;
    }
  }
  if (!context.has("flight-recorder")) return {};
  if (outcome.flight_records().empty()) {
    const std::string& state = outcome.bring_up().failed_in();
    context.reporter().note(state.empty()
                                ? "no flight recorder dump: no watchdog of PyTorch ran out"
                                : fmt::format("no flight recorder dump: the start ended in state "
                                              "{}, and no "
                                              "watchdog of PyTorch had a collective to wait for",
                                              state));
  }
  for (const pb::FlightRecorder& recorder : outcome.flight_records()) {
    const std::string name = fmt::format("nccl_trace_rank_{}.json", recorder.rank());
    const std::string text = traces::flight_recorder_json(recorder);
    if (auto done = write_to_folder(context, "flight-recorder", name, text); !done) return done;
  }
  return {};
}

bool wants_timeline(const Context& context) {
  return context.has("timeline") || context.has("perfetto") || context.has("chrome") ||
         context.has("csv");
}

sim::Detail detail_of(const Context& context) {
  sim::Detail detail = sim::Detail::kSavings;
  if (wants_timeline(context)) detail = detail | sim::Detail::kTimeline;
  if (context.has("flight-recorder")) detail = detail | sim::Detail::kRecords;
  // The document of --json carries what `rehearse report` draws.
  if (context.json() || context.has("perfetto")) detail = detail | sim::Detail::kPictures;
  return detail;
}

// Every operation, in the formats asked for.
Result<void> write_timelines(Context& context, const pb::Outcome& outcome) {
  if (context.has("timeline")) {
    const std::string text = to_json(outcome.timeline()).dump() + "\n";
    if (auto done = write_file(context.get<std::string>("timeline"), text, context.overwrite());
        !done) {
      return done;
    }
  }
  const auto write = [&](const char* option, const auto& writer) -> Result<void> {
    if (!context.has(option)) return {};
    const std::string path = context.get<std::string>(option);
    RH_TRY(AtomicFile file, AtomicFile::create(path, context.overwrite()));
    if (auto done = writer(file); !done) return done;
    if (auto done = file.commit(); !done) return done;
    context.reporter().note(
        fmt::format("{}: {}", path, format_bytes(static_cast<Bytes>(file.size()))));
    return {};
  };
  if (auto done = write("perfetto",
                        [&](AtomicFile& file) -> Result<void> {
                          pb::Pictures pictures;
                          if (!outcome.pictures().empty()) {
                            RH_TRY(pictures, sim::unpacked_pictures(outcome.pictures(), "run"));
                          }
                          return sim::write_perfetto(outcome.timeline(), outcome, pictures, file);
                        });
      !done) {
    return done;
  }
  if (auto done = write(
          "chrome",
          [&](AtomicFile& file) { return sim::write_chrome(outcome.timeline(), outcome, file); });
      !done) {
    return done;
  }
  return write("csv", [&](AtomicFile& file) { return sim::write_csv(outcome.timeline(), file); });
}

Result<int> run_run(Context& context) {
  if (context.has("list")) {
    if (context.inputs().empty()) return exit_code(list_scenarios(context));
    return fail(Code::kUsage, fmt::format("'{}' and --list", context.inputs().front()), "run",
                "leave out one of them");
  }
  if (context.inputs().empty()) {
    return fail(Code::kUsage, "SCENARIO is missing: what to simulate", "run",
                "rehearse run --list shows the shipped ones");
  }
  const std::string expected = context.has("expect") ? context.get<std::string>("expect") : "";
  if (!expected.empty()) {
    if (auto good = check_expected(expected); !good) return tl::unexpected(std::move(good).error());
  }
  RH_TRY(const Edited edited, load_edited(context, context.inputs().front()));
  if (context.has("dry-run")) {
    return exit_code(show_scenario(context, context.inputs().front(), edited));
  }
  RH_TRY(pb::Outcome outcome, simulate_edited(edited, detail_of(context), context.reporter()));
  if (auto written = write_logs(context, edited.changed, outcome); !written) {
    return tl::unexpected(std::move(written).error());
  }
  outcome.clear_flight_records();
  RH_TRY(const auto drawing, asked_draws(context, edited.calibration, edited.changed.document));
  if (drawing) {
    RH_TRY(*outcome.mutable_step_time_band_ns(),
           validation::step_time_band(edited.base, edited.changed, *drawing, context.reporter()));
  }
  if (auto written = write_timelines(context, outcome); !written) {
    return tl::unexpected(std::move(written).error());
  }
  outcome.clear_timeline();
  for (std::string& word : command_words(context)) outcome.add_command(std::move(word));
  context.show(edited.changed.findings);
  auto done = context.json()
                  ? context.print(to_json(outcome))
                  : context.print(std::string_view(outcome_text(outcome, context.terminal())));
  const bool as_expected = expected.empty() || expected == verdict_name(outcome.verdict());
  if (done && !as_expected) {
    context.reporter().note(fmt::format("the verdict is {}, expected was {}",
                                        verdict_name(outcome.verdict()), expected));
  }
  return exit_code(std::move(done), as_expected ? 0 : static_cast<int>(Code::kFinding));
}

}  // namespace

Verb run_verb() {
  Verb verb;
  verb.name = "run";
  verb.summary = "simulate a scenario, changed as you like";
  verb.details =
      "SCENARIO is the name of a shipped scenario, a YAML file, or "
      "a trace with defaults around it: a .rtrace, or files of any format that import reads (a "
      "folder "
      "is the recordings of one job). With a "
      "change, the scenario as it was is simulated too, for "
      "comparison. The verdict does not "
      "change the exit "
      "code unless --expect asks for one.";
  verb.positionals = {{"SCENARIO", "what to simulate", Count::kOptional, {}}};
  verb.options = [](po::options_description& options) {
    add_scenario_options(options);
    auto add = options.add_options();
    add("expect", po::value<std::string>()->value_name("VERDICT"),
        "exit code 1 unless the run ends so: completed, hang, crash, "
        "wrong-semantics, rejected");
    add("timeline", po::value<std::string>()->value_name("FILE"),
        "also write when every operation of every rank ran, as JSON in columns");
    add("perfetto", po::value<std::string>()->value_name("FILE"),
        "the same for ui.perfetto.dev, with links, memory and critical path; see `rehearse view`");
    add("chrome", po::value<std::string>()->value_name("FILE"),
        "the same as Chrome's older JSON, which other viewers read");
    add("csv", po::value<std::string>()->value_name("FILE"), "the same for spreadsheets");
    add("nccl-log", po::value<std::string>()->value_name("DIR"),
        "also write what each rank would print with NCCL_DEBUG=INFO: its start, steps, errors");
    add("flight-recorder", po::value<std::string>()->value_name("DIR"),
        "also write what PyTorch's flight recorder would dump, when a watchdog runs out");
    add("dry-run",
        "do not simulate: print the scenario with the changes as patches, to be kept as a file");
    add("list", "the shipped scenarios");
    add_draws_option(options, 0);
  };
  verb.writes = Writes::kFile;
  verb.examples = {{"./rehearse run --list", "what is shipped"},
                   {"./rehearse run ddp-16", "a healthy run and where its time goes"},
                   {"./rehearse run ddp-16 --set "
                    "platform.nodes[1].nics[*].bandwidth=100Gbps",
                    "the same with half the network on one node"},
                   {"./rehearse run ddp-16 --patch 'skip-collective: {rank: 3, nth: 5}' "
                    "--expect hang",
                    "one rank leaves out a collective"},
                   {"./rehearse run ddp-16 --fault F16 --nccl-log logs",
                    "InfiniBand disabled, and the logs of all ranks at start"},
                   {"./rehearse run ddp-16 --fault F21 --flight-recorder dumps",
                    "a hang, and what the flight recorder of each rank would hold"},
                   {"./rehearse run ddp-16 --fault F16 --dry-run -o sockets.yaml",
                    "the broken job as a scenario of its own"},
                   {"./rehearse run sockets.yaml", "which runs like any other"},
                   {"./rehearse run gpt-32 --patch 'steps: 4' --patch '{set: "
                    "{\"platform.nodes[1].nics[*].bandwidth\": 50Gbps}, from: 1s, until: 2s}'",
                    "slow ports on one node for a second in a longer run"},
                   {"./rehearse run ddp-16 --patch 'grow-data-parallel: 8' --timeline grown.json",
                    "the job on 128 GPUs, with the time of every operation"},
                   {"./rehearse run ddp-16 --fault F16 --perfetto slow.pftrace --csv slow.csv",
                    "every operation, for Perfetto and for a spreadsheet"}};
  verb.run = run_run;
  return verb;
}

}  // namespace rehearse::cli
