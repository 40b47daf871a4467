// SPDX-License-Identifier: Apache-2.0
// `rehearse platforms`: the catalogue of machines.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/document.hpp"
#include "base/install.hpp"
#include "base/units.hpp"
#include "cli/context.hpp"
#include "cli/platform_option.hpp"
#include "cli/platforms_import.hpp"
#include "cli/table.hpp"
#include "cli/verbs.hpp"
#include "platforms/model/catalogue.hpp"
#include "platforms/model/draw.hpp"

namespace rehearse::cli {
namespace {
namespace po = boost::program_options;
using Json = nlohmann::ordered_json;

Result<platforms::PlatformCatalogue> catalogue() {
  RH_TRY(auto folder, shipped("platforms/catalogue"));
  return platforms::PlatformCatalogue(folder);
}

// What one node has, in words: "8 x NVIDIA A100-SXM4-80GB".
std::string gpus_of(const pb::Node& node) {
  if (node.gpus().empty()) return "none";
  return fmt::format("{} x {}", node.gpus_size(), node.gpus(0).model());
}

std::string nics_of(const pb::Node& node) {
  if (node.nics().empty()) return "none";
  return fmt::format("{} x {}", node.nics_size(), format_bandwidth(node.nics(0).bandwidth()));
}

struct Shown {
  platforms::Entry entry;
  pb::Platform platform;  // expanded
};

Result<Shown> load(pb::Platform platform, const platforms::Entry& entry, uint32_t nodes) {
  if (nodes > 0) platform.set_scale(nodes);
  if (auto done = platforms::expand(platform, entry.id); !done) {
    return tl::unexpected(std::move(done).error());
  }
  if (platform.nodes().empty()) {
    return fail(Code::kBadInput, "the platform has no nodes", entry.id, "give it at least one");
  }
  return Shown{entry, std::move(platform)};
}

Json summary(const Shown& shown) {
  const pb::Node& node = shown.platform.nodes(0);
  return {{"id", shown.entry.id},
          {"name", shown.entry.name},
          {"description", shown.entry.description},
          {"nodes", shown.platform.nodes_size()},
          {"gpus_per_node", node.gpus_size()},
          {"gpu", node.gpus().empty() ? "" : node.gpus(0).model()},
          {"nics_per_node", node.nics_size()},
          {"nic_bandwidth", node.nics().empty() ? 0.0 : node.nics(0).bandwidth()}};
}

Result<void> list(Context& context) {
  RH_TRY(auto from, catalogue());
  RH_TRY(const auto entries, from.list());
  Json rows = Json::array();
  Table table({{"id"}, {"GPUs of a node"}, {"NICs of a node"}, {"what it is"}});
  for (const auto& entry : entries) {
    RH_TRY(pb::Platform platform, from.platform(entry.id));
    RH_TRY(const Shown shown, load(std::move(platform), entry, 0));
    rows.push_back(summary(shown));
    const pb::Node& node = shown.platform.nodes(0);
    table.add({entry.id, gpus_of(node), nics_of(node), entry.description});
  }
  if (context.json()) {
    return context.print(Json{{"schema", "rehearse.platforms/1"}, {"platforms", rows}});
  }
  return context.print(std::string_view(table.text(context.terminal())));
}

Result<void> show(Context& context) {
  const std::string& id = context.inputs()[1];
  RH_TRY(pb::Platform compact, read_platform(id));
  uint32_t nodes = 0;
  if (context.has("nodes")) {
    RH_TRY(nodes, context.number("nodes", 1, 65536));
  }
  const platforms::Entry entry{id, compact.name(), compact.description()};
  RH_TRY(const Shown shown, load(std::move(compact), entry, nodes));
  if (context.has("svg")) {
    const std::string file = context.get<std::string>("svg");
    auto done = write_file(file, platforms::draw_svg(shown.platform), context.overwrite());
    if (!done) return done;
    context.reporter().note(fmt::format("drew {}", file));
  }
  if (context.json()) {
    Json document = {{"schema", "rehearse.platform/1"}};
    document.update(summary(shown));
    document["platform"] = to_json(shown.platform);
    return context.print(document);
  }
  std::string text =
      shown.entry.description.empty() ? "" : fmt::format("{}: {}\n\n", id, shown.entry.description);
  text += platforms::draw_text(shown.platform);
  if (!shown.platform.sources().empty()) text += "\n";
  Table table({{""}, {""}});
  for (const auto& source : shown.platform.sources()) {
    table.add({"source: " + source.figure(), source.url()});
  }
  text += table.text(context.terminal());
  if (context.verbose()) text += "\n" + write_document(shown.platform);
  return context.print(std::string_view(text));
}

Result<int> run_platforms(Context& context) {
  const auto& words = context.inputs();
  Result<void> done;
  if (words.empty() || words[0] == "list") {
    done = words.size() < 2 ? list(context)
                            : fail(Code::kUsage, fmt::format("'{}' is not wanted here", words[1]),
                                   "platforms list", "rehearse platforms show " + words[1]);
  } else if (words[0] == "import") {
    done = import_platform(context);
  } else if (words.size() < 2) {
    done = fail(Code::kUsage, "ID is missing: the platform to show", "platforms show",
                "rehearse platforms lists them");
  } else if (words.size() > 2) {
    done = fail(Code::kUsage, "show takes one ID", words[2], "show them one after the other");
  } else {
    done = show(context);
  }
  return exit_code(std::move(done));
}

}  // namespace

Verb platforms_verb() {
  Verb verb;
  verb.name = "platforms";
  verb.summary = "browse the catalogue of machines, import others";
  verb.details =
      "`list` (the default) shows all; `show ID` one of them or a YAML file, -v with every part "
      "after expansion. "
      "`import FILE...` makes a platform of what a machine tells of itself: an NCCL topology "
      "(NCCL_TOPO_DUMP_FILE), an NCCL graph (NCCL_GRAPH_DUMP_FILE; with the topology it belongs "
      "to, "
      "or alone), the table of nvidia-smi topo -m, a log of NCCL or a trace, whose GPUs name "
      "the machine. What "
      "the "
      "files leave out comes from the "
      "machine of the catalogue that fits best and is listed under assumptions.";
  verb.positionals = {
      {"ACTION", "what to do", Count::kOptional, {"list", "show", "import"}},
      {"ID", "the platform or YAML file to show, or the files to import", Count::kAny, {}}};
  verb.options = [](po::options_description& options) {
    auto add = options.add_options();
    add("nodes", po::value<std::string>()->value_name("N"), "show or import it with N nodes");
    add("gpu", po::value<std::string>()->value_name("ID"),
        "import: data sheet of the GPUs where the files do not name them");
    add("svg", po::value<std::string>()->value_name("FILE"), "draw it");
  };
  verb.writes = Writes::kFile;
  verb.examples = {{"./rehearse platforms", "all machines"},
                   {"./rehearse platforms show dgx-a100 --nodes 4 --svg dgx.svg",
                    "four nodes of one kind, as text and as a picture"},
                   {"./rehearse platforms import tests/corpus/nccl_topology/two-sockets.xml -o "
                    "mine.yaml",
                    "a machine from NCCL's own description of it"}};
  verb.run = run_platforms;
  return verb;
}

}  // namespace rehearse::cli
