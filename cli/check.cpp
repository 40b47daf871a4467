// SPDX-License-Identifier: Apache-2.0
// `rehearse check`: what is wrong with a configuration, without running it.
#include "faults/check/check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/program_options/value_semantic.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "base/document.hpp"
#include "cli/scenario_options.hpp"
#include "cli/table.hpp"
#include "cli/verbs.hpp"
#include "faults/check/apply.hpp"
#include "faults/check/files/collect.hpp"

namespace rehearse::cli {
namespace {
namespace po = boost::program_options;
namespace fs = std::filesystem;

Style style_of(const pb::CheckFinding& finding) {
  return finding.severity() == "error"     ? Style::kRed
         : finding.severity() == "warning" ? Style::kYellow
                                           : Style::kDim;
}

std::string headline(const pb::CheckReport& report) {
  size_t errors = 0, warnings = 0;
  for (const pb::CheckFinding& finding : report.findings()) {
    errors += finding.severity() == "error" ? 1 : 0;
    warnings += finding.severity() == "warning" ? 1 : 0;
  }
  const auto counted = [](size_t n, const char* what) {
    return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
  };
  if (errors + warnings == 0)
    return fmt::format("{}: nothing is wrong as far as {} rules see", report.subject(),
                       report.rules());
  return fmt::format("{}: {}, {}", report.subject(), counted(errors, "error"),
                     counted(warnings, "warning"));
}

std::string text_of(const pb::CheckReport& report, bool verbose, const Terminal& terminal) {
  std::string out = terminal.styled(Style::kBold, headline(report)) + "\n";
  for (const pb::CheckFinding& finding : report.findings()) {
    if (finding.severity() == "info" && !verbose) continue;
    out += fmt::format("\n{} {} ({}, leads to {})\n",
                       terminal.styled(style_of(finding), finding.severity()), finding.where(),
                       finding.rule(), finding.category());
    out += "  what: " + finding.what() + "\n";
    if (!finding.why().empty()) out += "  why:  " + finding.why() + "\n";
    out += "  fix:  " + finding.fix() + "\n";
  }
  return fit(out, terminal.width());
}

constexpr uint64_t kLargestFile = 16u << 20;
constexpr size_t kMostFiles = 4096;

Result<void> refuse_edits(const Context& context, const char* what) {
  for (const char* option : {"set", "fault", "patch"}) {
    if (!context.has(option)) continue;
    return fail(Code::kUsage, what, fmt::format("--{}", option),
                "write the change into the scenario first");
  }
  return {};
}

// A scenario is one input: a name, a YAML document or a trace. Everything else is files of a cluster.
bool is_scenario(const std::vector<std::string>& inputs) {
  if (inputs.size() != 1) return false;
  std::error_code ec;
  const fs::path path = inputs.front();
  if (fs::is_directory(path, ec)) return false;
  const std::string ending = path.extension().string();
  return !fs::exists(path, ec) ? inputs.front().find('=') == std::string::npos
                               : ending == ".yaml" || ending == ".yml" || ending == ".rtrace";
}

Result<void> add_file(const fs::path& path, const std::string& node,
                      std::vector<faults::ClusterFile>& files) {
  if (files.size() >= kMostFiles) {
    return fail(Code::kLimit, fmt::format("more than {} files", kMostFiles), path.string(),
                "give fewer");
  }
  RH_TRY(std::string text, read_file(path, kLargestFile));
  files.push_back({path.string(), std::move(text), node});
  return {};
}

// The files of a folder; those of its folders belong to the nodes that these are named after.
Result<void> add_folder(const fs::path& folder, const std::string& node,
                        std::vector<faults::ClusterFile>& files) {
  std::error_code ec;
  std::vector<fs::path> entries;
  for (fs::directory_iterator at(folder, ec), end; !ec && at != end; at.increment(ec))
    entries.push_back(at->path());
  if (ec)
    return fail(Code::kMissingInput, "cannot read the folder: " + ec.message(), folder.string());
  std::sort(entries.begin(), entries.end());
  for (const fs::path& entry : entries) {
    if (fs::is_directory(entry, ec)) {
      if (!node.empty()) continue;
      if (auto added = add_folder(entry, entry.filename().string(), files); !added) return added;
    } else if (auto added = add_file(entry, node, files); !added) {
      return added;
    }
  }
  return {};
}

Result<std::vector<faults::ClusterFile>> cluster_files(const std::vector<std::string>& inputs) {
  std::vector<faults::ClusterFile> files;
  for (const std::string& input : inputs) {
    std::error_code ec;
    const size_t equals = fs::exists(input, ec) ? std::string::npos : input.find('=');
    const std::string node = equals == std::string::npos ? "" : input.substr(0, equals);
    const fs::path path = equals == std::string::npos ? input : input.substr(equals + 1);
    auto added =
        fs::is_directory(path, ec) ? add_folder(path, node, files) : add_file(path, node, files);
    if (!added) return tl::unexpected(added.error());
  }
  return files;
}

Result<pb::CheckReport> check_scenario(Context& context, const faults::Rules& rules) {
  const std::string& what = context.inputs().front();
  RH_TRY(const Edited edited, load_edited(context, what));
  const traces::Trace& trace = *edited.changed.trace;
  const auto recorded = static_cast<uint32_t>(trace.ranks.size());
  const uint32_t all = std::max(recorded, trace.header.world_size());
  pb::CheckReport report =
      faults::check(edited.changed.document, rules, edited.changed.document.name(), all - recorded);
  if (context.has("apply")) {
    auto none = refuse_edits(context, "--apply repairs a scenario as it is written");
    if (!none) return tl::unexpected(none.error());
    RH_TRY(const std::string repaired, faults::repaired_scenario(what, report));
    auto written = write_file(context.get<std::string>("apply"), repaired, context.overwrite());
    if (!written) return tl::unexpected(written.error());
  }
  return report;
}

// Repaired files go to a folder under their own names, those of a node's folder into one of that name.
Result<void> write_repaired(Context& context, const std::vector<faults::ClusterFile>& files,
                            const std::vector<std::string>& texts) {
  const fs::path folder = context.get<std::string>("apply");
  std::error_code ec;
  fs::create_directories(folder, ec);
  if (ec) return fail(Code::kIo, "cannot make the folder: " + ec.message(), folder.string());
  std::set<std::string> taken;
  for (size_t i = 0; i < files.size(); ++i) {
    if (texts[i].empty()) continue;
    const fs::path path = files[i].name;
    const std::string& node = files[i].node;
    const fs::path own = !node.empty() && path.parent_path().filename() == node ? node : "";
    fs::create_directories(folder / own, ec);
    std::string name = path.filename().string();
    if (!taken.insert((own / name).string()).second)
      name.insert(0, path.parent_path().filename().string() + "-");
    if (auto done = write_file(folder / own / name, texts[i], context.overwrite()); !done)
      return done;
  }
  return {};
}

Result<pb::CheckReport> check_files(Context& context, const faults::Rules& rules) {
  if (auto none = refuse_edits(context, "files are checked as they are"); !none)
    return tl::unexpected(none.error());
  RH_TRY(const auto files, cluster_files(context.inputs()));
  auto read = faults::collect(files, rules.tables());
  if (!read) {
    Error error = std::move(read).error();
    if (error.where.empty()) error.where = context.inputs().front();  // a folder without files
    return tl::unexpected(std::move(error));
  }
  const faults::Collected collected = std::move(*read);
  context.show(collected.findings);
  pb::CheckReport report =
      faults::check(collected.document, rules,
                    files.size() == 1 ? files[0].name : fmt::format("{} files", files.size()));
  for (size_t i = 0; i < files.size(); ++i) {
    report.add_known(
        fmt::format("{}: {}", files[i].name, faults::name_of(collected.roles[i].kind)));
  }
  if (context.has("apply")) {
    auto written = write_repaired(context, files, faults::repaired_files(files, collected, report));
    if (!written) return tl::unexpected(written.error());
  }
  return report;
}

Result<int> run_check(Context& context) {
  std::vector<fs::path> folders;
  if (context.has("rules")) {
    for (const std::string& folder : context.get<std::vector<std::string>>("rules"))
      folders.emplace_back(folder);
  }
  RH_TRY(const faults::Rules rules, faults::Rules::load_shipped(folders));
  RH_TRY(const pb::CheckReport report, is_scenario(context.inputs())
                                           ? check_scenario(context, rules)
                                           : check_files(context, rules));
  const auto done =
      context.json()
          ? context.print(to_json(report))
          : context.print(std::string_view(text_of(report, context.verbose(), context.terminal())));
  if (!done) return tl::unexpected(done.error());
  const bool wrong =
      std::any_of(report.findings().begin(), report.findings().end(),
                  [](const pb::CheckFinding& finding) { return finding.severity() != "info"; });
  return wrong ? 1 : 0;
}

}  // namespace

Verb check_verb() {
  Verb verb;
  verb.name = "check";
  verb.summary = "find what is wrong with a configuration, without running it";
  verb.details =
      "Applies rules to the launch, the environment of every rank, the network and the versions of "
      "a scenario, or of a "
      "cluster's own files: outputs of env, ip addr, ibstat, nvidia-smi topo -m, pip list and df, "
      "hostfiles, launch and "
      "training scripts, TF_CONFIG. A file is known by what is in it and belongs to the node that "
      "NODE=FILE, its folder "
      "or its name says. Each finding says where, what, why and what to change. Rules are data "
      "(faults/check/rules); "
      "--rules adds your own. Exit code 1: errors or warnings.";
  verb.positionals = {{"SCENARIO|FILE",
                       "a scenario; or files and folders of a cluster, NODE=FILE to say whose",
                       Count::kSome,
                       {}}};
  verb.options = [](po::options_description& options) {
    add_scenario_options(options);
    options.add_options()("rules", po::value<std::vector<std::string>>()->value_name("DIR"),
                          "a folder with rules of your own; may be repeated");
    options.add_options()(
        "apply", po::value<std::string>()->value_name("PATH"),
        "write the fixes: the scenario to a file, or the changed files of a cluster to a folder");
    options.add_options()("force", "let --apply overwrite files");
  };
  verb.examples = {
      {"./rehearse check ddp-16", "a healthy job", 0},
      {"./rehearse check ddp-16 --set launch.world_size=24", "a wrong world size", 1},
      {"./rehearse check ddp-16 --fault F16 --json", "InfiniBand left disabled, for programs", 1}};
  verb.run = run_check;
  return verb;
}

}  // namespace rehearse::cli
