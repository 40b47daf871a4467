// SPDX-License-Identifier: Apache-2.0
// `rehearse validate`: the models against reference figures.
#include "cli/validate.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/units.hpp"
#include "cli/context.hpp"
#include "cli/table.hpp"
#include "cli/validate_all.hpp"
#include "cli/validate_document.hpp"
#include "cli/validate_nccl_log.hpp"
#include "cli/validate_replay.hpp"
#include "cli/verbs.hpp"
#include "validation/nccl_vectors.hpp"

namespace rehearse::cli {
namespace {
namespace po = boost::program_options;
using Json = nlohmann::ordered_json;

Json document(const validation::VectorReport& report) {
  Json differences = Json::array();
  for (const auto& d : report.differences) {
    differences.push_back({{"file", d.file},
                           {"line", d.row},
                           {"column", d.column},
                           {"expected", d.expected},
                           {"computed", d.computed}});
  }
  validation::Check check = validation::vectors_check(report);
  check.id = "nccl-vectors";  // of any folder, not of those that are shipped
  Json row = check_json(check, CheckRows::kLeftOut);
  row["max_error"] = report.max_relative_error;
  return validate_document({{"rows", report.rows()}, {"mismatches", report.mismatches}},
                           Json::array({std::move(row)}),
                           {{"differences", differences}, {"absent", report.absent}});
}

std::string text(const validation::VectorReport& report, const Terminal& terminal) {
  std::string out = fmt::format(
      "{} of {} rows differ ({} communicators, largest relative "
      "error {:.1e})\n",
      format_count(report.mismatches), format_count(report.rows()), format_count(report.shapes),
      report.max_relative_error);
  for (const std::string& name : report.absent) out += name + " is not there\n";
  if (report.differences.empty()) return out;
  Table table({{"place"}, {"column"}, {"NCCL"}, {"computed"}});
  for (const auto& d : report.differences) {
    table.add({fmt::format("{}:{}", d.file, d.row), d.column, d.expected, d.computed});
  }
  return out + table.text(terminal);
}

Result<int> run_validate(Context& context) {
  const auto& words = context.inputs();
  if (words.empty()) return validate_all(context);
  if (words[0] == "nccl-log") return run_validate_nccl_log(context);
  if (words[0] == "nccl-tests") {
    return validate_nccl_tests(context, {words.begin() + 1, words.end()});
  }
  if (words[0] == "pairs") return validate_pairs(context, {words.begin() + 1, words.end()});
  if (words[0] == "replay") return validate_replay(context);
  if (!context.has("vectors")) {
    return fail(Code::kUsage, "--vectors is missing: the folder of nccl_*.csv", "validate nccl",
                "rehearse validate --help");
  }
  RH_TRY(const auto report, validation::check_vectors(context.get<std::string>("vectors")));
  auto done = context.json() ? context.print(document(report))
                             : context.print(std::string_view(text(report, context.terminal())));
  return exit_code(std::move(done), report.mismatches == 0 ? 0 : static_cast<int>(Code::kFinding));
}

}  // namespace

Verb validate_verb() {
  Verb verb;
  verb.name = "validate";
  verb.summary = "compare the models with reference figures";
  verb.details =
      "Without WHAT, every check of accuracy there is: how many rows, their median error and 9 of "
      "10, the target and whether it is met. Real traces and tables are looked for in --data (or "
      "$REHEARSE_DATA); checks whose data is not there are skipped by name. --rows lists every "
      "prediction with its measurement, source and command; --markdown writes the page "
      "docs/accuracy.md.\n\n"
      "`nccl` recomputes NCCL's own cost tables and decisions (algorithm, protocol, channels, "
      "threads) from nccl_shapes.csv, nccl_tuning_table.csv and nccl_choice.csv and lists what "
      "differs.\n\n"
      "`nccl-log` compares channels, transports, rings, tuning tables and the logged choices of "
      "NCCL logs with our decisions for the same ranks on a platform.\n\n"
      "`nccl-tests` predicts the time of every row of nccl-tests tables (as printed, or collected "
      "in a CSV file) from data sheets and model alone and reports per hardware where it is off "
      "and by how much. The platform is --platform, else the one that "
      "validation/figures/nccl_tests_hardware.yaml names for the GPU, else the catalogue's "
      "nearest.\n\n"
      "`pairs` predicts published figures before and after a fix (a JSON list as "
      "faults/fault_fix_pairs.json "
      "of the data folder): as validation/figures/fault_pairs.yaml or a fault_pairs.yaml beside "
      "the list says, else as far as "
      "the pair's own words can be read.\n\n"
      "`replay` replays a recorded job (the files or the folder of all its ranks, any format that "
      "import knows) as recorded, without the recorded times of NCCL's kernels, and compares step "
      "times and every collective's start and end with what was measured, beside a naive sum of "
      "kernels.\n\n"
      "With WHAT, exit code 1 when something differs, the median error is above its target, or a "
      "replayed "
      "step is off by more than 3 %.";
  verb.positionals = {{"WHAT",
                       "which model; without it all checks",
                       Count::kOptional,
                       {"nccl", "nccl-log", "nccl-tests", "pairs", "replay"}},
                      {"FILE",
                       "nccl-log: logs; nccl-tests: tables; pairs: lists of pairs; replay: files "
                       "or folder of one job",
                       Count::kAny,
                       {}}};
  verb.options = [](po::options_description& options) {
    auto add = options.add_options();
    add("data", po::value<std::string>()->value_name("DIR"),
        "all checks: folder of real traces and tables");
    add("only", po::value<std::vector<std::string>>()->value_name("PART"),
        "all checks: only this part of them; repeatable");
    add("rows", "all checks: list every row");
    add("markdown", "all checks: the page of accuracy");
    add("html", "all checks: plots of predicted against measured, one page that opens offline");
    add("save-changes", po::value<std::string>()->value_name("FILE"),
        "all checks: write how far predicted changes were from measured ones, by kind of change");
    add("strict", "all checks: exit code 1 when a target is missed");
    add("vectors", po::value<std::string>()->value_name("DIR"),
        "nccl: folder with the reference vectors");
    add("platform", po::value<std::string>()->value_name("P"),
        "machine that wrote the logs or tables: a catalogue id or a YAML file");
    add("nodes", po::value<std::string>()->value_name("N"),
        "nccl-tests: nodes of tables that do not say");
    add("gpus", po::value<std::string>()->value_name("N"),
        "nccl-tests: GPUs of tables that do not say");
    add("collective", po::value<std::string>()->value_name("C"),
        "nccl-tests: collective of tables that do not say");
    add("nccl-version", po::value<std::string>()->value_name("V"),
        "nccl-tests: version of tables that do not say");
    add("env", po::value<std::vector<std::string>>()->value_name("NAME=VALUE"),
        "a variable that was set and is not shown; repeatable");
    add("save", po::value<std::string>()->value_name("FILE"),
        "nccl-tests: write the error band of each platform");
  };
  verb.writes = Writes::kFile;
  verb.examples = {
      {"./rehearse validate --only decisions", "all checks of NCCL's decisions"},
      {"./rehearse validate nccl --vectors tests/golden/nccl", "the vectors that the tests use"},
      {"./rehearse validate nccl-log tests/corpus/nccl_log/h100-2gpu.log --platform hgx-h100",
       "a log of two H100 against our decisions"},
      {"./rehearse validate nccl-tests tests/golden/nccl_tests/all_reduce.txt --platform hgx-h100",
       "a table that all_reduce_perf printed"},
      {"./rehearse validate pairs tests/golden/pairs/pairs.json --rows",
       "published figures before and after a fix"},
      {"./rehearse synth resnet50 --dp 8 -o resnet.rtrace", "a job of 8 ranks"},
      {"./rehearse validate replay resnet.rtrace", "how far its replay is from its own times"}};
  verb.run = run_validate;
  return verb;
}

}  // namespace rehearse::cli
