// SPDX-License-Identifier: Apache-2.0
// `rehearse export`: a .rtrace as files that other tools read, one per rank.
#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "base/units.hpp"
#include "cli/context.hpp"
#include "cli/verbs.hpp"
#include "traces/export/chakra.hpp"
#include "traces/export/kineto.hpp"
#include "traces/model/rtrace.hpp"

namespace rehearse::cli {
namespace {
namespace po = boost::program_options;
using Json = nlohmann::ordered_json;

struct Written {
  std::vector<std::string> files;
  uint64_t operations = 0;
  uint64_t left_out = 0;  // operations that the format has no place for
};

Result<void> make_folder(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (!error) return {};
  return fail(Code::kIo, "cannot create the folder: " + error.message(), folder.string(),
              "name a folder that can be written");
}

// The ranks asked for, or all.
Result<std::vector<traces::RankId>> ranks_of(const Context& context,
                                             const traces::RtraceReader& reader) {
  if (!context.has("rank")) return reader.ranks();
  RH_TRY(const int64_t rank, context.number("rank", 0, UINT32_MAX));
  return std::vector<traces::RankId>{static_cast<traces::RankId>(rank)};
}

Result<Written> write_ranks(Context& context, const traces::RtraceReader& reader,
                            const std::filesystem::path& folder) {
  Written out;
  const bool chakra = context.get<std::string>("format") == "chakra";
  const auto compression =
      context.has("gzip") ? traces::Compression::kGzip : traces::Compression::kNone;
  const traces::KinetoContext kineto{reader.header(), reader.communicators(), reader.strings()};
  const traces::ChakraContext shared{reader.header(), reader.communicators(), reader.strings()};
  RH_TRY(const std::vector<traces::RankId> ranks, ranks_of(context, reader));
  for (size_t i = 0; i < ranks.size(); ++i) {
    if (context.reporter().interrupted()) return fail(Code::kInterrupted, "interrupted", "export");
    context.reporter().progress("ranks", i, ranks.size());
    RH_TRY(const traces::RankTrace rank, reader.rank(ranks[i]));
    out.operations += rank.ops.size();
    if (chakra) {
      RH_TRY(const auto written, traces::write_chakra(rank, shared, folder, context.overwrite()));
      out.left_out += written.left_out;
      out.files.push_back(written.path.string());
    } else {
      RH_TRY(const auto written,
             traces::write_kineto(rank, kineto, folder, compression, context.overwrite()));
      out.files.push_back(written.string());
    }
  }
  if (!chakra) return out;
  const auto groups = folder / "comm_groups.json";
  if (auto done = write_file(groups, traces::chakra_groups_json(reader.communicators()),
                             context.overwrite());
      !done) {
    return tl::unexpected(done.error());
  }
  out.files.push_back(groups.string());
  return out;
}

Result<int> run_export(Context& context) {
  if (!context.output()) {
    return fail(Code::kUsage, "no output folder", "", "name it with -o FOLDER");
  }
  const std::string format = context.has("format") ? context.get<std::string>("format") : "";
  if (format != "chakra" && format != "kineto") {
    return fail(Code::kUsage,
                format.empty() ? "no format" : fmt::format("unknown format '{}'", format),
                "--format", "known are chakra and kineto");
  }
  if (context.has("gzip") && format != "kineto") {
    return fail(Code::kUsage, "Chakra's readers take no compressed files", "--gzip",
                "leave it out");
  }
  traces::ReadOptions reading;
  if (context.has("allow-cut")) reading.truncated = traces::Truncated::kAccept;
  RH_TRY(const auto reader, traces::RtraceReader::open(context.inputs().front(), reading));
  const std::filesystem::path folder(*context.output());
  if (auto made = make_folder(folder); !made) return tl::unexpected(made.error());
  RH_TRY(const Written written, write_ranks(context, reader, folder));
  Findings findings = reader.findings();
  if (written.left_out > 0) {
    findings.add("memory-events-left-out", Severity::kInfo, context.inputs().front(),
                 "Chakra has no node for allocations", written.left_out);
  }
  context.show(findings);
  if (context.json()) {
    return exit_code(context.print_stdout(Json{{"schema", "rehearse.export/1"},
                                               {"format", format},
                                               {"output", folder.string()},
                                               {"files", written.files},
                                               {"operations", written.operations},
                                               {"left_out", written.left_out},
                                               {"findings", findings_json(findings)}}));
  }
  if (!context.quiet()) {
    context.reporter().note(fmt::format("{}: {} files, {} operations", folder.string(),
                                        written.files.size(), format_count(written.operations)));
  }
  return 0;
}

}  // namespace

Verb export_verb() {
  Verb verb;
  verb.name = "export";
  verb.summary = "write a trace as Chakra or PyTorch profiler files";
  verb.details =
      "One file per rank into FOLDER. chakra: trace.<rank>.et, which ASTRA-sim and "
      "Chakra's "
      "tools read, and comm_groups.json with the members of the communicators; import gives the "
      "same "
      "operations back. kineto: rank<N>.json as the PyTorch profiler writes it, which Perfetto and "
      "TensorBoard show.";
  verb.positionals = {{"TRACE", "a .rtrace file", Count::kOne, {}}};
  verb.options = [](po::options_description& options) {
    auto add = options.add_options();
    add("format", po::value<std::string>()->value_name("NAME"), "chakra or kineto");
    add("rank", po::value<std::string>()->value_name("R"), "only this rank");
    add("gzip", "compress the files (kineto)");
    add("allow-cut", "read a file that was cut up to its last whole block");
  };
  verb.writes = Writes::kFolder;
  verb.examples = {
      {"./rehearse synth dlrm --dp 4 -o dlrm4.rtrace", "a small trace"},
      {"./rehearse export dlrm4.rtrace --format chakra -o dlrm4-chakra", "for ASTRA-sim"},
      {"./rehearse import dlrm4-chakra -o dlrm4-again.rtrace", "and back"},
      {"./rehearse export dlrm4.rtrace --format kineto --rank 2 --gzip -o dlrm4-kineto",
       "one rank for Perfetto"}};
  verb.run = run_export;
  return verb;
}

}  // namespace rehearse::cli
