// SPDX-License-Identifier: Apache-2.0
// import: any trace in, one .rtrace out.
#include "traces/import/import.hpp"

#include <fmt/format.h>

#include <boost/program_options/value_semantic.hpp>
#include <nlohmann/json.hpp>

#include "base/units.hpp"
#include "cli/context.hpp"
#include "cli/import_limits.hpp"
#include "cli/verbs.hpp"
#include "traces/inspect/evidence_view.hpp"
#include "traces/model/rtrace.hpp"

namespace rehearse::cli {
namespace {

using traces::Imported;

size_t calls_of(const traces::Trace& trace) {
  size_t n = 0;
  for (const traces::RankTrace& r : trace.ranks) n += r.ops.calls.size();
  return n;
}

nlohmann::ordered_json summary_json(const Imported& imported, const std::string& output) {
  nlohmann::ordered_json inputs = nlohmann::ordered_json::array();
  for (const Imported::Input& in : imported.inputs) {
    inputs.push_back({{"file", in.file}, {"format", in.format}, {"bytes", in.bytes}});
  }
  return {{"schema", "rehearse.import/1"},
          {"output", output},
          {"ranks", imported.trace.ranks.size()},
          {"world_size", imported.trace.header.world_size()},
          {"cloned_ranks", imported.trace.header.cloned_from_size()},
          {"operations", imported.trace.operations()},
          {"calls", calls_of(imported.trace)},
          {"communicators", imported.trace.communicators.size()},
          {"evidence", imported.trace.evidence.size()},
          {"clock_residual_ns", imported.trace.header.clock_residual()},
          {"inputs", inputs},
          {"findings", findings_json(imported.findings)}};
}

Result<int> run_import(Context& context) {
  const auto output = context.output();
  if (!output) {
    return fail(Code::kUsage, "no output file", "", "name it with -o job.rtrace");
  }
  traces::ImportOptions options;
  if (context.has("allow-truncated")) options.cut_files = traces::CutFiles::kAccept;
  if (context.has("as-recorded")) options.clocks = traces::ClockAlignment::kAsRecorded;
  if (context.has("columns")) options.columns = context.get<std::string>("columns");
  if (context.has("job")) options.job = context.get<std::string>("job");
  if (context.has("assume-symmetric")) {
    RH_TRY(const auto seed, context.number("seed", 0, INT64_MAX));
    options.assume_symmetric = static_cast<uint64_t>(seed);
  }
  if (context.has("unprofiled-step")) {
    RH_TRY(options.unprofiled_step, parse_duration(context.get<std::string>("unprofiled-step")));
    if (options.unprofiled_step <= 0) {
      return fail(Code::kUsage, "the step time must be positive", "--unprofiled-step",
                  "give it as 212ms");
    }
  }
  if (context.has("limit")) {
    const auto set = set_limits(context.get<std::vector<std::string>>("limit"), options);
    if (!set) return tl::unexpected(set.error());
  }
  const std::vector<std::filesystem::path> inputs(context.inputs().begin(), context.inputs().end());
  RH_TRY(const Imported imported, traces::import_files(inputs, options, context.reporter()));
  if (auto written = traces::write_rtrace(imported.trace, *output, context.overwrite()); !written) {
    return tl::unexpected(written.error());
  }
  context.show(imported.findings);
  if (context.json()) {
    const auto replace = nlohmann::ordered_json::error_handler_t::replace;
    const std::string text = summary_json(imported, *output).dump(2, ' ', false, replace) + "\n";
    if (auto shown = write_stdout(text); !shown) return tl::unexpected(shown.error());
    return 0;
  }
  if (!context.quiet() && !imported.trace.evidence.empty()) {
    context.reporter().note(
        fmt::format("{}: {}", *output, traces::evidence_headline(imported.trace.evidence)));
  }
  if (!context.quiet() && !imported.trace.ranks.empty()) {
    context.reporter().note(fmt::format(
        "{}: {} of {} ranks, {} operations, {} collective and point-to-point calls", *output,
        imported.trace.ranks.size(), imported.trace.header.world_size(),
        format_count(imported.trace.operations()), format_count(calls_of(imported.trace))));
  }
  return 0;
}

}  // namespace

Verb import_verb() {
  Verb verb;
  verb.name = "import";
  verb.summary = "turn traces of a real run into one .rtrace";
  verb.details =
      "Reads files, folders and globs; formats are told by content, compressed or not. Ranks are "
      "merged, "
      "collectives matched across them, clocks aligned on the ends of collectives and steps found. "
      "NCCL logs, nccl-tests tables, NCCL Inspector records and flight recorder dumps are "
      "evidence: "
      "they attach to the trace, to a .rtrace, or stand alone. What was "
      "ignored, repaired or contradictory is listed as findings and kept in the file.";
  verb.positionals = {{"INPUT", "trace files, folders or globs", Count::kSome, {}}};
  verb.options = [](boost::program_options::options_description& options) {
    options.add_options()("allow-truncated", "take what is whole of files that end early")(
        "as-recorded", "leave the clocks of ranks as they were recorded")(
        "columns", boost::program_options::value<std::string>()->value_name("FILE"),
        "what the columns of a table of operations (CSV) are, as YAML")(
        "job", boost::program_options::value<std::string>()->value_name("NAME"),
        "name of the job, kept in the file")("assume-symmetric",
                                             "clone missing ranks from recorded ranks of the same "
                                             "role; everything made of the file says "
                                             "so")(
        "seed", boost::program_options::value<std::string>()->value_name("N")->default_value("1"),
        "seed of the durations that cloned ranks draw")(
        "unprofiled-step", boost::program_options::value<std::string>()->value_name("TIME"),
        "step time measured without the profiler, as 212ms: fits the profiler's cost on the host")(
        "limit",
        boost::program_options::value<std::vector<std::string>>()->value_name("NAME=VALUE"),
        ("what is beyond it is refused with exit code 75; may be repeated (" +
         limits_with_defaults() + ")")
            .c_str());
  };
  verb.writes = Writes::kFile;
  verb.examples = {
      {"./rehearse import tests/corpus/kineto/small.json -o small.rtrace",
       "one rank of a PyTorch profile"},
      {"./rehearse import --columns tests/corpus/csv/columns.yaml "
       "tests/corpus/csv/small.csv -o table.rtrace",
       "a table of operations with columns of one's own"},
      {"./rehearse import tests/corpus/kineto/small.json --assume-symmetric -o all.rtrace",
       "with the ranks that were not recorded as clones of those that were"},
      {"./rehearse import tests/corpus/nccl_log/h100-2gpu.log -o log.rtrace",
       "an NCCL log as evidence of its own; beside a trace it attaches to it"},
      {"./rehearse import tests/corpus/kineto/small.json --limit operations=1000 -o few.rtrace",
       "with a limit on what is believed of a file from somewhere else"}};
  verb.run = run_import;
  return verb;
}

}  // namespace rehearse::cli
