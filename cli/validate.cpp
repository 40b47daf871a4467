// SPDX-License-Identifier: Apache-2.0
// `rehearse validate`: the models against reference figures.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/units.hpp"
#include "cli/context.hpp"
#include "cli/table.hpp"
#include "cli/validate_nccl_log.hpp"
#include "cli/verbs.hpp"
#include "validation/nccl_vectors.hpp"

namespace rehearse::cli {
namespace {
namespace po = boost::program_options;
using Json = nlohmann::ordered_json;

// Relative error above which a figure counts as different; as in
// validation/nccl_vectors.
constexpr double kTarget = 1e-5;

Json document(const validation::VectorReport& report) {
  Json differences = Json::array();
  for (const auto& d : report.differences) {
    differences.push_back({{"file", d.file},
                           {"line", d.row},
                           {"column", d.column},
                           {"expected", d.expected},
                           {"computed", d.computed}});
  }
  const Json check = {
      {"id", "nccl-vectors"}, {"what", "NCCL 2.28.9's own cost tables and decisions"},
      {"n", report.rows()},   {"max_error", report.max_relative_error},
      {"target", kTarget},    {"met", report.mismatches == 0},
      {"skipped", false},     {"why", ""}};
  return {{"schema", "rehearse.validate/1"},
          {"rows", report.rows()},
          {"mismatches", report.mismatches},
          {"checks", Json::array({check})},
          {"differences", differences}};
}

std::string text(const validation::VectorReport& report, const Terminal& terminal) {
  std::string out = fmt::format(
      "{} of {} rows differ ({} communicators, largest relative "
      "error {:.1e})\n",
      format_count(report.mismatches), format_count(report.rows()), format_count(report.shapes),
      report.max_relative_error);
  if (report.differences.empty()) return out;
  Table table({{"place"}, {"column"}, {"NCCL"}, {"computed"}});
  for (const auto& d : report.differences) {
    table.add({fmt::format("{}:{}", d.file, d.row), d.column, d.expected, d.computed});
  }
  return out + table.text(terminal);
}

Result<int> run_validate(Context& context) {
  if (context.inputs().front() == "nccl-log") return run_validate_nccl_log(context);
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
      "`nccl` recomputes NCCL's own cost tables and decisions "
      "(algorithm, protocol, channels, "
      "threads) from "
      "nccl_shapes.csv, nccl_tuning_table.csv and nccl_choice.csv "
      "and lists what differs. `nccl-log` compares channels, transports, rings, tuning tables and "
      "the logged choices of NCCL logs with our decisions for the same ranks on a platform. Exit "
      "code 1 when "
      "something differs.";
  verb.positionals = {{"WHAT", "which model", Count::kOne, {"nccl", "nccl-log"}},
                      {"FILE", "NCCL logs, or a .rtrace that carries some", Count::kAny, {}}};
  verb.options = [](po::options_description& options) {
    options.add_options()("vectors", po::value<std::string>()->value_name("DIR"),
                          "folder with the reference vectors")(
        "platform", po::value<std::string>()->value_name("P"),
        "of nccl-log: catalogue id or YAML file of the machine that wrote the log")(
        "env", po::value<std::vector<std::string>>()->value_name("NAME=VALUE")->composing(),
        "of nccl-log: a variable that the log does not show");
  };
  verb.writes = Writes::kFile;
  verb.examples = {
      {"./rehearse validate nccl --vectors tests/golden/nccl", "the vectors that the tests use"},
      {"./rehearse validate nccl-log tests/corpus/nccl_log/h100-2gpu.log --platform hgx-h100",
       "a log of two H100 against our decisions"}};
  verb.run = run_validate;
  return verb;
}

}  // namespace rehearse::cli
