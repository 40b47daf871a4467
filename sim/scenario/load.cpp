// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "base/atomic_file.hpp"
#include "base/document.hpp"
#include "base/environment.hpp"
#include "base/install.hpp"
#include "base/text.hpp"
#include "platforms/model/catalogue.hpp"
#include "sim/scenario/expand.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/scenario/sealed.hpp"
#include "sim/scenario/written.hpp"
#include "traces/import/recording.hpp"
#include "traces/model/rtrace.hpp"
#include "traces/synth/synth.hpp"

namespace rehearse::sim {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFolder = "sim/scenarios";

Result<platforms::PlatformCatalogue> catalogue() {
  RH_TRY(fs::path folder, shipped("platforms/catalogue"));
  return platforms::PlatformCatalogue(folder);
}

Result<fs::path> shipped_path(const std::string& name) {
  RH_TRY(fs::path folder, shipped(kFolder));
  return folder / (name + ".yaml");
}

bool is_name(const std::string& what) {
  return !what.empty() && what.find_first_of("/.") == std::string::npos;
}

// Generated traces are kept by what they are made from.
Result<fs::path> generated(const pb::Synth& wanted, Reporter& reporter) {
  RH_TRY(pb::Synth complete, synth::complete(wanted));
  RH_TRY(platforms::PlatformCatalogue gpus, catalogue());
  RH_TRY(pb::Gpu gpu, gpus.gpu(complete.gpu()));
  RH_TRY(fs::path cache, cache_folder());
  const fs::path path =
      cache / fmt::format("{}-{}.rtrace", complete.model(), synth::recipe_id(complete, gpu));
  std::error_code ec;
  if (fs::exists(path, ec)) {
    // A file from an interrupted machine is made again.
    if (auto open = traces::RtraceReader::open(path, {})) return path;
  }
  reporter.note(
      fmt::format("generating the trace ({}), kept in {}", complete.model(), path.string()));
  RH_TRY(uint64_t operations,
         synth::synthesize_to(path, complete, gpu, {Overwrite::kReplace, 2}, reporter));
  (void)operations;
  return path;
}

// `platform: cluster.yaml` is a file beside the scenario, any other name an entry of the catalogue.
Catalogue resolver_beside(const fs::path& scenario, const platforms::PlatformCatalogue& platforms) {
  return [folder = scenario.parent_path(), entries = platforms.resolver()](
             const google::protobuf::Descriptor& type,
             std::string_view id) -> Result<std::unique_ptr<google::protobuf::Message>> {
    if (&type != pb::Platform::descriptor() || !id.ends_with(".yaml")) return entries(type, id);
    auto platform = std::make_unique<pb::Platform>();
    if (auto read = read_document_file((folder / id).string(), *platform, entries); !read) {
      return tl::unexpected(read.error());
    }
    platform->clear_like();
    return platform;
  };
}

constexpr uint64_t kMaxEnvironmentBytes = 1u << 20;

Result<void> read_environments(const fs::path& scenario, pb::Launch& launch) {
  for (pb::NodeLaunch& node : *launch.mutable_nodes()) {
    if (node.env_file().empty()) continue;
    const fs::path file = scenario.parent_path() / node.env_file();
    RH_TRY(const std::string text, read_file(file, kMaxEnvironmentBytes));
    // The last assignment of a name counts, as in a shell.
    std::map<std::string, std::string> variables;
    for (VariableLine& line : read_environment(text)) variables[line.name] = std::move(line.value);
    for (const auto& [name, value] : variables) node.mutable_env()->insert({name, value});
    node.clear_env_file();
  }
  return {};
}

constexpr uint64_t kMaxFileBytes = 16u << 20;

// Files of the nodes that variables name. A scenario of somebody else must not
// read what is not its own.
Result<void> read_files(const fs::path& scenario, pb::Launch& launch) {
  for (pb::LaunchFile& each : *launch.mutable_files()) {
    const std::string where = fmt::format("{}: launch.files[{}]", scenario.string(), each.path());
    if (each.path().empty()) {
      return bad_input("a file without a path", where, "write the path that the variable names");
    }
    if (each.file().empty() == each.text().empty()) {
      return bad_input("a file has either `file` or `text`", where,
                       "write file: NAME, a file beside the scenario");
    }
    if (each.file().empty()) continue;
    const fs::path name = fs::path(each.file()).lexically_normal();
    if (name.is_absolute() || *name.begin() == "..") {
      return bad_input(fmt::format("{} is not below the folder of the scenario", each.file()),
                       where, "copy the file beside the scenario and name it there");
    }
    RH_TRY(*each.mutable_text(), read_file(scenario.parent_path() / name, kMaxFileBytes));
    each.clear_file();
  }
  return {};
}

// What is wrong with a part of a scenario is told with the file that it stands in.
tl::unexpected<Error> inside(const fs::path& file, const std::string& part, Error error) {
  if (error.code == Code::kBadInput || error.code == Code::kLimit) {
    error.where = fmt::format("{}: {}{}{}", file.string(), part, error.where.empty() ? "" : ": ",
                              error.where);
  }
  return tl::unexpected(std::move(error));
}

Result<fs::path> find_trace(const pb::TraceSource& source, const fs::path& beside, int depth,
                            Reporter& reporter) {
  if (source.has_synth() && !source.file().empty()) {
    return fail(Code::kBadInput, "a trace is either a file or made by synth, not both",
                beside.string() + ": trace", "remove one of them");
  }
  if (source.has_synth()) {
    auto made = generated(source.synth(), reporter);
    if (!made) return inside(beside, "trace.synth", std::move(made).error());
    return made;
  }
  if (source.file().empty()) {
    return fail(Code::kBadInput, "the scenario names no trace", beside.string(),
                "add `trace: FILE.rtrace` or the name of a shipped scenario");
  }
  std::error_code ec;
  if (is_name(source.file()) && depth == 0) {
    RH_TRY(fs::path shipped, shipped_path(source.file()));
    if (fs::exists(shipped, ec)) {
      RH_TRY(pb::Scenario other, read_scenario(shipped));
      return find_trace(other.trace(), shipped, depth + 1, reporter);
    }
  }
  fs::path path = source.file();
  if (path.is_relative()) path = beside.parent_path() / path;
  if (!fs::exists(path, ec)) {
    return fail(Code::kMissingInput, "the trace " + path.string() + " does not exist",
                beside.string() + ": trace",
                "name a trace (relative to the scenario) or a shipped scenario");
  }
  return path;
}

// What is sealed acts and is not listed.
Result<void> apply_sealed(Scenario& scenario, const std::string& where) {
  RH_TRY(const std::vector<pb::Patch> patches, unseal(scenario.document.sealed(), where));
  for (const pb::Patch& patch : patches) {
    if (auto applied = apply(scenario, patch); !applied) return applied;
  }
  scenario.applied.clear();
  return {};
}

Result<Scenario> finish(pb::Scenario document, const fs::path& where, const Assignments& written,
                        Reporter& reporter) {
  RH_TRY(const platforms::PlatformCatalogue platforms, catalogue());
  for (const auto& [path, value] : written) {
    // Another machine takes the place of the one that is written, it is not merged into it.
    if (path == "platform") document.clear_platform();
    if (auto set = set_path(document, path, value, platforms.resolver()); !set) {
      return tl::unexpected(std::move(set).error());
    }
  }
  if (auto read = read_files(where, *document.mutable_launch()); !read) {
    return tl::unexpected(std::move(read).error());
  }
  RH_TRY(fs::path path, find_trace(document.trace(), where, 0, reporter));
  RH_TRY(traces::Trace trace, traces::read_recording({path}, traces::CutFiles::kRefuse, reporter));
  if (const auto clones = trace.header.cloned_from_size(); clones > 0) {
    reporter.note(fmt::format("{} of {} ranks of {} are clones: how they differ is not known",
                              clones, trace.ranks.size(), path.string()));
  }
  Scenario scenario;
  scenario.document = std::move(document);
  scenario.trace = std::make_shared<const traces::Trace>(std::move(trace));
  scenario.trace_file = path.string();
  if (scenario.document.name().empty()) scenario.document.set_name(where.stem().string());
  if (auto expanded = expand(scenario, where.string()); !expanded) {
    return tl::unexpected(expanded.error());
  }
  if (auto applied = apply_sealed(scenario, where.string()); !applied) {
    return tl::unexpected(applied.error());
  }
  const auto patches = scenario.document.patches();
  for (int i = 0; i < patches.size(); ++i) {
    if (auto applied = apply(scenario, patches[i]); !applied) {
      return inside(where, fmt::format("patches[{}]", i), std::move(applied).error());
    }
  }
  scenario.origin.Clear();  // what the file itself changes is in the file
  for (const auto& [name, value] : written)
    scenario.origin.add_written(fmt::format("{}={}", name, value));
  return scenario;
}

Result<Scenario> load_named(const std::string& what, const Assignments& written,
                            Reporter& reporter) {
  std::error_code ec;
  if (is_name(what) && !fs::is_regular_file(what, ec)) {
    RH_TRY(fs::path path, shipped_path(what));
    if (fs::exists(path, ec)) {
      RH_TRY(pb::Scenario document, read_scenario(path));
      return finish(std::move(document), path, written, reporter);
    }
  }
  if (is_name(what) && !fs::exists(what, ec)) {
    RH_TRY(std::vector<ShippedScenario> known, shipped_scenarios());
    std::vector<std::string> names;
    names.reserve(known.size());
    for (const ShippedScenario& scenario : known) names.push_back(scenario.name);
    const std::string meant = nearest(what, names);
    return fail(Code::kMissingInput, "there is no scenario of this name", what,
                meant.empty() ? "`rehearse run --list` shows the shipped ones"
                              : "did you mean " + meant + "?");
  }
  if (!fs::exists(what, ec)) {
    return fail(Code::kMissingInput, "no such file", what,
                "name a scenario file, a trace or a shipped scenario (`rehearse run --list`)");
  }
  if (traces::is_recording(what)) {
    pb::Scenario document;
    document.mutable_trace()->set_file(fs::absolute(what).string());
    return finish(std::move(document), what, written, reporter);
  }
  RH_TRY(pb::Scenario document, read_scenario(what));
  return finish(std::move(document), what, written, reporter);
}

}  // namespace

Result<pb::Scenario> read_scenario(const fs::path& file) {
  RH_TRY(const platforms::PlatformCatalogue platforms, catalogue());
  pb::Scenario document;
  if (auto read = read_document_file(file.string(), document, resolver_beside(file, platforms));
      !read) {
    return tl::unexpected(read.error());
  }
  if (auto read = read_environments(file, *document.mutable_launch()); !read) {
    return tl::unexpected(read.error());
  }
  return document;
}

Result<Scenario> load_scenario(pb::Scenario written, const fs::path& file, Reporter& reporter) {
  return finish(std::move(written), file, {}, reporter);
}

Result<std::vector<ShippedScenario>> shipped_scenarios() {
  RH_TRY(fs::path folder, shipped(kFolder));
  std::vector<ShippedScenario> list;
  std::error_code ec;
  for (const auto& entry : fs::directory_iterator(folder, ec)) {
    if (entry.path().extension() != ".yaml") continue;
    RH_TRY(pb::Scenario document, read_scenario(entry.path()));
    list.push_back({entry.path().stem().string(), document.description()});
  }
  if (ec) return fail(Code::kIo, "cannot list the scenarios: " + ec.message(), folder.string());
  std::sort(list.begin(), list.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return list;
}

Result<pb::Scenario> written_scenario(const std::string& what) {
  std::error_code ec;
  pb::Scenario document;
  fs::path path = what;
  if (is_name(what) && !fs::is_regular_file(what, ec)) {
    RH_TRY(path, shipped_path(what));
  }
  if (traces::is_recording(path)) {
    document.mutable_trace()->set_file(path.lexically_normal().string());
    return document;
  }
  if (auto read = read_document_file(path.string(), document); !read) {
    return tl::unexpected(read.error());
  }
  if (document.name().empty()) document.set_name(path.stem().string());
  return document;
}

Result<Scenario> scenario_of(std::shared_ptr<const traces::Trace> trace, const std::string& where) {
  Scenario scenario;
  scenario.trace = std::move(trace);
  scenario.document.set_name(fs::path(where).stem().string());
  if (auto expanded = expand(scenario, where); !expanded) return tl::unexpected(expanded.error());
  return scenario;
}

Result<Scenario> load_scenario(const std::string& what, Reporter& reporter) {
  return load_scenario(what, {}, reporter);
}

Result<Scenario> load_scenario(const std::string& what, const Assignments& written,
                               Reporter& reporter) {
  RH_TRY(Scenario scenario, load_named(what, written, reporter));
  scenario.origin.set_scenario(what);
  return scenario;
}

Result<Scenario> load_origin(const pb::Origin& origin, const std::string& folder,
                             Reporter& reporter) {
  if (origin.scenario().empty()) {
    return fail(Code::kBadInput, "the outcome does not say which scenario it is of", "origin",
                "make it anew with `rehearse run SCENARIO --json`");
  }
  Assignments written;
  for (const std::string& text : origin.written()) {
    RH_TRY(const pb::Patch patch, parse_assignment(text));
    written.emplace_back(patch.set().begin()->first, patch.set().begin()->second);
  }
  std::string what = origin.scenario();
  std::error_code ec;
  if (const fs::path beside = fs::path(folder) / what;
      !is_name(what) && !fs::exists(what, ec) && fs::exists(beside, ec)) {
    what = beside.string();
  }
  RH_TRY(Scenario scenario, load_scenario(what, written, reporter));
  scenario.document.set_fidelity(origin.fidelity());
  for (const pb::Patch& patch : origin.edits()) {
    if (auto applied = apply(scenario, patch); !applied) return tl::unexpected(applied.error());
  }
  return scenario;
}

}  // namespace rehearse::sim
