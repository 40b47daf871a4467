// SPDX-License-Identifier: Apache-2.0
#include "cli/platforms_import.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/document.hpp"
#include "base/install.hpp"
#include "platforms/import/import.hpp"
#include "platforms/model/links.hpp"
#include "traces/evidence/evidence.hpp"
#include "traces/import/import.hpp"
#include "traces/inspect/hardware.hpp"

namespace rehearse::cli {
namespace {

using Json = nlohmann::ordered_json;
using platforms::ImportedPlatform;
using platforms::ImportFormat;
using platforms::ImportText;

// Descriptions of machines are small; what is larger can only be a trace.
constexpr uint64_t kMaxBytes = 32u << 20;

// Files in the order given; graphs last, because they stand on a topology.
class Importing {
 public:
  Importing(const platforms::Machines& machines, platforms::ImportSettings settings,
            Reporter& reporter)
      : machines_(machines), settings_(std::move(settings)), reporter_(reporter) {}

  Result<void> add(const std::string& file) {
    // The traces of a job, a file for each rank.
    std::error_code none;
    if (std::filesystem::is_directory(file, none)) return add_run(file);
    auto text = read_file(file, kMaxBytes);
    if (!text && text.error().code != Code::kLimit) return tl::unexpected(text.error());
    const ImportFormat format = text ? platforms::format_of(*text) : ImportFormat::kUnknown;
    switch (format) {
      case ImportFormat::kUnknown:
        return add_run(file);
      case ImportFormat::kNcclGraph:
        graphs_.push_back({file, std::move(*text)});
        return {};
      case ImportFormat::kNcclTopology:
        return merge(platforms::import_nccl_topology({file, *text}, machines_, settings_), file);
      case ImportFormat::kNvidiaSmi:
        return merge(platforms::import_nvidia_smi({file, *text}, machines_, settings_), file);
    }
    return {};
  }

  Result<ImportedPlatform> finish() {
    for (const ImportText& graph : graphs_) {
      std::optional<pb::Platform> into;
      if (!out_.platform.nodes().empty()) into = out_.platform;
      RH_TRY(ImportedPlatform part, platforms::import_nccl_graph(graph, into, machines_));
      formats.emplace_back(graph.name, part.format);
      out_.findings.merge(part.findings);
      out_.platform = std::move(part.platform);
    }
    return std::move(out_);
  }

  std::vector<std::pair<std::string, std::string>> formats;  // file, format

 private:
  // A log or trace names its GPUs; the rest is the machine of the catalogue that fits best.
  Result<void> add_run(const std::string& file) {
    Findings ignored;
    const auto evidence = traces::read_evidence(file, ignored, reporter_);
    if (evidence && !evidence->empty()) {
      return add_match(traces::hardware_of(*evidence), file, "NCCL log");
    }
    traces::ImportOptions options;
    options.cut_files = traces::CutFiles::kAccept;
    options.clocks = traces::ClockAlignment::kAsRecorded;
    auto run = traces::import_files({file}, options, reporter_);
    if (run) return add_match(traces::hardware_of(run->trace), file, "trace");
    if (run.error().code == Code::kBadInput) {
      run.error().fix =
          "platforms are imported from NCCL topology and graph files, nvidia-smi topo -m, NCCL "
          "logs and traces";
    }
    return tl::unexpected(run.error());
  }

  Result<void> add_match(traces::Hardware hardware, const std::string& file, const char* format) {
    if (!settings_.gpu.empty()) {
      hardware.seen.gpu_model = machines_.gpus().at(settings_.gpu).model();
    }
    // How many there are says nothing of what they are; how they are joined narrows it down.
    const platforms::Seen& seen = hardware.seen;
    if (seen.gpu_model.empty() && seen.compute_capability == 0 && !seen.nvlink) {
      return fail(Code::kBadInput, "the file does not tell its GPUs", file,
                  "give --gpu ID, or write the platform by hand");
    }
    RH_TRY(const platforms::Match match, platforms::best_match(machines_, hardware.seen));
    const auto gpus = static_cast<uint32_t>(match.node.gpus_size());
    auto part = platforms::import_seen(hardware.seen, traces::nodes_needed(hardware, gpus), file,
                                       machines_);
    if (part) part->format = format;
    return merge(std::move(part), file);
  }

  [[nodiscard]] bool empty() const {
    return out_.platform.nodes().empty() && out_.platform.like().empty();
  }

  // Several machines become the nodes of one platform; the first tells fabric and storage.
  Result<void> merge(Result<ImportedPlatform> part, const std::string& file) {
    if (!part) return tl::unexpected(part.error());
    formats.emplace_back(file, part->format);
    out_.findings.merge(part->findings);
    if (empty()) {
      out_.platform = std::move(part->platform);
      out_.platform.set_name(std::filesystem::path(file).stem().string());
      return {};
    }
    if (out_.platform.nodes().empty() || part->platform.nodes().empty()) {
      out_.findings.add("second-machine", Severity::kWarning, file,
                        "a machine of the catalogue stands alone; the first file is taken");
      return {};
    }
    for (pb::Node& node : *part->platform.mutable_nodes()) {
      *out_.platform.add_nodes() = std::move(node);
    }
    for (const std::string& text : part->platform.assumptions()) {
      const auto& known = out_.platform.assumptions();
      if (std::find(known.begin(), known.end(), text) == known.end()) {
        out_.platform.add_assumptions(text);
      }
    }
    return {};
  }

  const platforms::Machines& machines_;
  platforms::ImportSettings settings_;
  Reporter& reporter_;
  ImportedPlatform out_;
  std::vector<ImportText> graphs_;
};

}  // namespace

Result<void> import_platform(Context& context) {
  const auto& words = context.inputs();
  if (words.size() < 2) {
    return fail(Code::kUsage, "FILE is missing: what to import", "platforms import",
                "give an NCCL topology, an NCCL graph or the output of nvidia-smi topo -m");
  }
  RH_TRY(const auto folder, shipped("platforms/catalogue"));
  RH_TRY(const platforms::Machines machines,
         platforms::Machines::load(platforms::PlatformCatalogue(folder)));
  platforms::ImportSettings settings;
  if (context.has("gpu")) {
    settings.gpu = context.get<std::string>("gpu");
    if (const auto known = machines.catalogue().gpu(settings.gpu); !known) {
      return tl::unexpected(known.error());
    }
  }
  Importing importing(machines, settings, context.reporter());
  for (size_t i = 1; i < words.size(); ++i) {
    if (auto ok = importing.add(words[i]); !ok) return ok;
  }
  RH_TRY(ImportedPlatform imported, importing.finish());
  if (context.has("nodes")) {
    RH_TRY(const int64_t nodes, context.number("nodes", 1, 65536));
    imported.platform.set_scale(static_cast<uint32_t>(nodes));
  }
  // What does not expand or has no links is no platform.
  RH_TRY(const pb::Platform whole, platforms::expanded(imported.platform, words[1], machines));
  RH_TRY(const auto links, platforms::Links::build(whole));
  context.show(imported.findings);
  const std::string yaml = write_document(imported.platform);
  if (!context.json()) return context.print(std::string_view(yaml));
  if (const auto output = context.output()) {
    if (auto ok = write_file(*output, yaml, context.overwrite()); !ok) return ok;
  }
  Json inputs = Json::array();
  for (const auto& [file, format] : importing.formats) {
    inputs.push_back({{"file", file}, {"format", format}});
  }
  const pb::Node& node = whole.nodes(0);
  return context.print_stdout(Json{{"schema", "rehearse.platforms-import/1"},
                                   {"inputs", inputs},
                                   {"nodes", whole.nodes_size()},
                                   {"gpus_per_node", node.gpus_size()},
                                   {"gpu", node.gpus().empty() ? "" : node.gpus(0).model()},
                                   {"nics_per_node", node.nics_size()},
                                   {"links", links.size()},
                                   {"assumptions", whole.assumptions()},
                                   {"platform", to_json(imported.platform)},
                                   {"findings", findings_json(imported.findings)}});
}

}  // namespace rehearse::cli
