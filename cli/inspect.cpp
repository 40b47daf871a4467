// SPDX-License-Identifier: Apache-2.0
// `rehearse inspect`: what is in a trace.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/context.hpp"
#include "cli/table.hpp"
#include "cli/verbs.hpp"
#include "traces/import/recording.hpp"
#include "traces/inspect/inspection.hpp"
#include "traces/model/rtrace.hpp"

namespace rehearse::cli {
namespace {
namespace po = boost::program_options;

constexpr int kPipeWidth = 120;  // columns of tables that are not on a terminal

Result<traces::Inspection> inspected(Context& context, const traces::InspectOptions& options) {
  const std::vector<std::filesystem::path> inputs(context.inputs().begin(), context.inputs().end());
  if (inputs.size() == 1 && !std::filesystem::is_directory(inputs.front()) &&
      (traces::is_rtrace(inputs.front()) || inputs.front().extension() == ".rtrace")) {
    traces::ReadOptions reading;
    if (context.has("allow-cut")) reading.truncated = traces::Truncated::kAccept;
    RH_TRY(const auto reader, traces::RtraceReader::open(inputs.front(), reading));
    return traces::inspect(reader, options, context.reporter());
  }
  const auto cut = context.has("allow-cut") ? traces::CutFiles::kAccept : traces::CutFiles::kRefuse;
  RH_TRY(const traces::Trace trace, traces::read_recording(inputs, cut, context.reporter()));
  return traces::inspect(trace, options);
}

Result<int> run_inspect(Context& context) {
  traces::InspectOptions options;
  if (context.has("rank")) {
    RH_TRY(options.rank, context.number("rank", 0, UINT32_MAX));
  }
  if (context.has("step")) {
    RH_TRY(options.step, context.number("step", INT64_MIN, INT64_MAX));
  }
  options.list_collectives = context.has("collectives");
  RH_TRY(const auto inspection, inspected(context, options));
  if (context.json()) return exit_code(context.print(traces::to_json(inspection)));
  const int width = context.terminal().width() > 0 ? context.terminal().width() : kPipeWidth;
  const std::string text = fit(traces::to_text(inspection, width), context.terminal().width());
  return exit_code(context.print(std::string_view(text)));
}

}  // namespace

Verb inspect_verb() {
  Verb verb;
  verb.name = "inspect";
  verb.summary = "show what is in a trace";
  verb.details =
      "How large it is, who called which collective, where the time "
      "of each rank went, who came last, and what "
      "does not fit together. Of files and folders of other formats it is what an import of them "
      "gives, which is not kept.";
  verb.positionals = {{"TRACE",
                       "a .rtrace, or files and folders of any format that import reads",
                       Count::kSome,
                       {}}};
  verb.options = [](po::options_description& options) {
    auto add = options.add_options();
    add("collectives", "list every collective with first and last arrival");
    add("rank", po::value<std::string>()->value_name("R"),
        "only this rank, and the collectives it took part in");
    add("step", po::value<std::string>()->value_name("N"), "only what started in this step");
    add("allow-cut", "read a file that was cut up to its last whole block");
  };
  verb.writes = Writes::kFile;
  verb.examples = {{"./rehearse synth resnet50 --dp 4 -o small.rtrace", "a small trace to look at"},
                   {"./rehearse inspect small.rtrace", "what is in it"},
                   {"./rehearse inspect small.rtrace --rank 1 --collectives --json",
                    "one rank and its collectives, for programs"},
                   {"./rehearse inspect tests/corpus/kineto/small.json",
                    "a file of PyTorch's profiler as it is"}};
  verb.run = run_inspect;
  return verb;
}

}  // namespace rehearse::cli
