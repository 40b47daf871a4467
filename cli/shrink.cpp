// SPDX-License-Identifier: Apache-2.0
// `rehearse shrink`: the smallest scenario that fails as a given one does.
#include "faults/shrink/shrink.hpp"

#include <fmt/format.h>

#include <boost/program_options/value_semantic.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/document.hpp"
#include "base/units.hpp"
#include "cli/outcome_file.hpp"
#include "cli/outcome_text.hpp"
#include "cli/scenario_options.hpp"
#include "cli/table.hpp"
#include "cli/verbs.hpp"
#include "traces/model/rtrace.hpp"

namespace rehearse::cli {
namespace {
namespace po = boost::program_options;
using Json = nlohmann::ordered_json;

Json size_json(const sim::JobSize& size) {
  return {{"ranks", size.ranks},
          {"nodes", size.nodes},
          {"steps", size.steps},
          {"operations", size.operations},
          {"most_operations_of_a_rank", size.most_per_rank},
          {"patches", size.patches}};
}

std::string size_text(const sim::JobSize& size) {
  return fmt::format("{} rank{}, {} node{}, {} step{}, {} operations", size.ranks,
                     size.ranks == 1 ? "" : "s", size.nodes, size.nodes == 1 ? "" : "s", size.steps,
                     size.steps == 1 ? "" : "s", format_count(size.operations));
}

// The document at `path` and the trace beside it.
Result<std::string> write_shrunk(Context& context, const std::string& path,
                                 const faults::Shrunk& shrunk) {
  const std::filesystem::path trace = std::filesystem::path(path).replace_extension(".rtrace");
  if (trace == path) {
    return fail(Code::kUsage, "the scenario and its trace would be one file", path,
                "name the scenario FILE.yaml; the trace goes to FILE.rtrace");
  }
  pb::Scenario document = shrunk.rendered.document;
  document.mutable_trace()->set_file(trace.filename().string());
  if (auto done = traces::write_rtrace(*shrunk.rendered.trace, trace, context.overwrite()); !done) {
    return tl::unexpected(std::move(done).error());
  }
  if (auto done = write_file(path, write_document(document), context.overwrite()); !done) {
    return tl::unexpected(std::move(done).error());
  }
  return trace.string();
}

Json shrunk_json(const faults::Shrunk& shrunk, const std::vector<faults::Reduction>& reductions) {
  Json rows = Json::array();
  for (const faults::Reduction& reduction : reductions) {
    Json row = {{"what", reduction.what}, {"runs", reduction.runs}};
    row.update(size_json(reduction.size));
    rows.push_back(std::move(row));
  }
  Json culprits = Json::array();
  for (const std::string& culprit : shrunk.cause.culprits) culprits.push_back(culprit);
  return {{"schema", "rehearse.shrink/1"},
          {"symptom", shrunk.outcome.symptom().id()},
          {"verdict", verdict_name(shrunk.outcome.verdict())},
          {"culprits", culprits},
          {"before", size_json(shrunk.before)},
          {"after", size_json(shrunk.after)},
          {"runs", shrunk.runs},
          {"minimal", shrunk.minimal},
          {"reductions", rows},
          {"outcome", to_json(shrunk.outcome)}};
}

std::string shrunk_text(const faults::Shrunk& shrunk,
                        const std::vector<faults::Reduction>& reductions,
                        const Terminal& terminal) {
  std::string out = terminal.styled(
      Style::kBold,
      fmt::format("{} -> {}: {} {}", size_text(shrunk.before), size_text(shrunk.after),
                  shrunk.outcome.symptom().id(), shrunk.outcome.symptom().label()));
  out += fmt::format("\n{} runs simulated; {}\n\n", format_count(shrunk.runs),
                     shrunk.minimal ? "no single part can be left out any more"
                                    : "stopped by --max-runs: more may be possible");
  Table table({{"reduction"},
               {"ranks", Align::kRight},
               {"nodes", Align::kRight},
               {"steps", Align::kRight},
               {"operations", Align::kRight},
               {"runs", Align::kRight}});
  for (const faults::Reduction& reduction : reductions) {
    table.add({reduction.what, format_count(reduction.size.ranks),
               format_count(reduction.size.nodes), format_count(reduction.size.steps),
               format_count(reduction.size.operations), format_count(reduction.runs)});
  }
  return out + table.text(terminal) + "\n" + outcome_head(shrunk.outcome, terminal);
}

Result<int> run_shrink(Context& context) {
  faults::ShrinkOptions options;
  if (context.has("symptom")) options.symptom = context.get<std::string>("symptom");
  if (context.has("max-runs")) {
    RH_TRY(const int64_t most, context.number("max-runs", 1, 10'000'000));
    options.max_runs = static_cast<uint32_t>(most);
  }
  std::vector<faults::Reduction> reductions;
  options.told = [&](const faults::Reduction& reduction) {
    reductions.push_back(reduction);
    if (context.verbose()) context.reporter().note(reduction.what);
  };
  RH_TRY(const Subject subject, load_subject(context, context.inputs().front()));
  RH_TRY(const faults::Shrunk shrunk,
         faults::shrink(subject.scenario, options, context.reporter()));
  Json document = shrunk_json(shrunk, reductions);
  std::string text = shrunk_text(shrunk, reductions, context.terminal());
  if (const auto path = context.output()) {
    RH_TRY(const std::string trace, write_shrunk(context, *path, shrunk));
    document["files"] = {*path, trace};
    text +=
        fmt::format("\nwritten: {} and {}; see it with `rehearse run {}`\n", *path, trace, *path);
  }
  return exit_code(context.json() ? context.print_stdout(document)
                                  : context.print_stdout(std::string_view(text)));
}

}  // namespace

Verb shrink_verb() {
  Verb verb;
  verb.name = "shrink";
  verb.summary = "the smallest scenario with the same symptom and cause";
  verb.details =
      "Leaves out ranks, nodes, steps, collectives, operations, settings and patches as long as "
      "the run fails as "
      "before: same verdict, symptom and phase, and nobody else to blame. The result is 1-minimal: "
      "no single part can "
      "go. -o FILE.yaml writes it, with its trace beside it as FILE.rtrace. Patches of the program "
      "have become part of "
      "the trace.";
  verb.positionals = {
      {"SCENARIO|OUTCOME", "what fails: a scenario, or an outcome (.json)", Count::kOne, {}}};
  verb.options = [](po::options_description& options) {
    add_scenario_options(options);
    auto add = options.add_options();
    add("symptom", po::value<std::string>()->value_name("ID"),
        "the category that has to stay, such as D2.1; refused when the scenario shows another");
    add("max-runs", po::value<std::string>()->value_name("N"), "stop after N simulations (20000)");
  };
  verb.writes = Writes::kFile;
  verb.examples = {{"./rehearse shrink ddp-16 --fault F21 --symptom D2.1 -o small.yaml",
                    "a hang of 16 ranks, as small as it gets"},
                   {"./rehearse run small.yaml --expect hang", "it still hangs"}};
  verb.run = run_shrink;
  return verb;
}

}  // namespace rehearse::cli
