// SPDX-License-Identifier: Apache-2.0
#include "faults/check/files/collect.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "base/document.hpp"
#include "base/environment.hpp"
#include "base/text.hpp"
#include "faults/check/expression.hpp"
#include "faults/check/files/launch_script.hpp"
#include "faults/check/files/machine.hpp"
#include "faults/check/files/training_script.hpp"

namespace rehearse::faults {
namespace {

namespace fs = std::filesystem;
using Variables = std::map<std::string, std::string>;

constexpr uint32_t kMostRanks = 65536;

bool describes_processes(FileKind kind) {
  return kind == FileKind::kEnvironment || kind == FileKind::kLaunchScript ||
         kind == FileKind::kTrainingScript || kind == FileKind::kHostfile ||
         kind == FileKind::kTfConfig;
}

Variables variables_in(const std::string& text) {
  Variables out;
  for (VariableLine& line : read_environment(text)) out[line.name] = std::move(line.value);
  return out;
}

std::optional<uint32_t> number_in(const Variables& variables,
                                  std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const auto at = variables.find(name);
    if (at == variables.end()) continue;
    if (const auto value = whole_number(at->second)) return value;
  }
  return std::nullopt;
}

// Puts the pieces together, in the order: files, nodes, ranks.
class Collector {
 public:
  Collector(std::span<const ClusterFile> files, const pb::CheckTables& tables)
      : files_(files), tables_(tables) {}

  Result<Collected> make() {
    size_t understood = 0;
    for (const ClusterFile& file : files_) {
      FileRole& role = out_.roles.emplace_back();
      role.kind = file_kind(file.text);
      if (role.kind == FileKind::kUnknown) {
        out_.findings.add(
            "file-not-understood", Severity::kWarning, file.name,
            "not one of: env, launch or training script, hostfile, ip addr, ip route, "
            "ibstat, nvidia-smi topo -m, pip list, df, TF_CONFIG");
        continue;
      }
      ++understood;
    }
    if (understood == 0) {
      return fail(Code::kBadInput, "no file says anything of the job",
                  files_.empty() ? "" : files_.front().name,
                  "give outputs of env, ip addr, ibstat, nvidia-smi topo -m, a hostfile or a "
                  "launch script");
    }
    read_scripts();
    find_nodes();
    assign_files();
    describe_nodes();
    compare_scripts();
    place_ranks();
    read_training();
    return std::move(out_);
  }

 private:
  [[nodiscard]] std::vector<size_t> of_kind(FileKind kind) const {
    std::vector<size_t> found;
    for (size_t i = 0; i < files_.size(); ++i) {
      if (out_.roles[i].kind == kind) found.push_back(i);
    }
    return found;
  }

  void read_scripts() {
    for (size_t i : of_kind(FileKind::kLaunchScript))
      scripts_.emplace(i, read_launch_script(files_[i].text));
    for (size_t i : of_kind(FileKind::kEnvironment))
      environments_.emplace(i, variables_in(files_[i].text));
  }

  void add_node(const std::string& name) {
    if (name.empty() || nodes_.size() >= kMostRanks) return;
    if (std::find(nodes_.begin(), nodes_.end(), name) == nodes_.end()) nodes_.push_back(name);
  }

  static std::string host_in(const Variables& variables) {
    for (const char* name : {"SLURMD_NODENAME", "HOSTNAME", "HOST"}) {
      if (const auto at = variables.find(name); at != variables.end())
        return at->second.substr(0, at->second.find('.'));
    }
    return {};
  }

  void add_hosts(const std::vector<HostSlots>& hosts) {
    for (const HostSlots& host : hosts) {
      add_node(host.name);
      if (host.slots) slots_[host.name] = *host.slots;
    }
  }

  void find_nodes() {
    for (size_t i : of_kind(FileKind::kHostfile)) add_hosts(read_hostfile(files_[i].text));
    for (const auto& [i, script] : scripts_) add_hosts(script.hosts);
    for (const auto& [i, variables] : environments_) {
      const auto list = variables.find("SLURM_JOB_NODELIST");
      if (list == variables.end()) continue;
      for (const std::string& name : expand_node_list(list->second)) add_node(name);
    }
    for (const auto& [i, variables] : environments_) add_node(host_in(variables));
    for (const ClusterFile& file : files_) add_node(file.node);
    uint32_t wanted = 1;
    // A hostfile lists all nodes there are, whatever the launcher is told.
    listed_ = !of_kind(FileKind::kHostfile).empty();
    for (const auto& [i, script] : scripts_) {
      const auto& told = script.allocated_nodes ? script.allocated_nodes : script.nodes;
      if (!listed_) wanted = std::max(wanted, told.value_or(1));
    }
    for (FileKind kind :
         {FileKind::kEnvironment, FileKind::kIpAddr, FileKind::kIbstat, FileKind::kTopology}) {
      if (nodes_.empty()) wanted = std::max(wanted, static_cast<uint32_t>(of_kind(kind).size()));
    }
    // Nodes that nobody names.
    for (uint32_t i = 0; nodes_.size() < std::min(wanted, kMostRanks); ++i) {
      add_node(fmt::format("node{}", i));
    }
  }

  [[nodiscard]] std::optional<uint32_t> told_by(const ClusterFile& file, size_t index) const {
    const auto position = [&](const std::string& name) -> std::optional<uint32_t> {
      const auto at = std::find(nodes_.begin(), nodes_.end(), name);
      if (name.empty() || at == nodes_.end()) return std::nullopt;
      return static_cast<uint32_t>(at - nodes_.begin());
    };
    if (const auto found = position(file.node)) return found;
    if (const auto at = environments_.find(index); at != environments_.end()) {
      if (const auto found = position(host_in(at->second))) return found;
    }
    if (const auto at = scripts_.find(index); at != scripts_.end() && at->second.node_rank) {
      if (*at->second.node_rank < nodes_.size() && scripts_.size() > 1) return at->second.node_rank;
    }
    const fs::path path = file.name;
    if (const auto found = position(path.parent_path().filename().string())) return found;
    for (const std::string& stem : {path.filename().string(), path.stem().string()}) {
      for (char separator : {'.', '-', '_'}) {
        for (const std::string& word : split(stem, separator)) {
          if (const auto found = position(word)) return found;
        }
      }
    }
    return std::nullopt;
  }

  void assign_files() {
    std::map<FileKind, uint32_t> next;
    for (size_t i = 0; i < files_.size(); ++i) {
      FileRole& role = out_.roles[i];
      if (role.kind == FileKind::kUnknown || role.kind == FileKind::kHostfile) continue;
      const bool alone = of_kind(role.kind).size() == 1;
      auto node = told_by(files_[i], i);
      if (!node && describes_processes(role.kind) && alone) continue;
      if (!node && role.kind == FileKind::kTrainingScript) continue;
      if (!node)
        node = std::min<uint32_t>(next[role.kind], static_cast<uint32_t>(nodes_.size()) - 1);
      ++next[role.kind];
      role.nodes.push_back(*node);
    }
  }

  void describe_nodes() {
    for (const std::string& name : nodes_)
      out_.document.mutable_platform()->add_nodes()->set_name(name);
    for (size_t i = 0; i < files_.size(); ++i) {
      for (uint32_t n : out_.roles[i].nodes)
        describe(i, *out_.document.mutable_platform()->mutable_nodes(static_cast<int>(n)));
      // Versions and the like that nobody tells a node for hold for all.
      if (!out_.roles[i].nodes.empty() || describes_processes(out_.roles[i].kind)) continue;
      for (pb::Node& node : *out_.document.mutable_platform()->mutable_nodes()) describe(i, node);
    }
  }

  void describe(size_t file, pb::Node& node) {
    describe_node(out_.roles[file].kind, files_[file].text, files_[file].name, node);
  }

  // Script of a node, or the only one.
  [[nodiscard]] const LaunchScript* script_of(uint32_t node) const {
    for (const auto& [i, script] : scripts_) {
      const auto& nodes = out_.roles[i].nodes;
      if (nodes.empty() || std::find(nodes.begin(), nodes.end(), node) != nodes.end())
        return &script;
    }
    return nullptr;
  }

  uint32_t processes_on(uint32_t node) {
    const LaunchScript* script = script_of(node);
    if (script != nullptr && script->processes_per_node) {
      return std::min(kMostRanks,
                      *script->processes_per_node * script->launchers_per_node.value_or(1));
    }
    const pb::Node& described = out_.document.platform().nodes(static_cast<int>(node));
    if (script != nullptr && script->one_per_gpu && described.gpus_size() > 0) {
      return static_cast<uint32_t>(described.gpus_size());
    }
    if (const auto at = slots_.find(nodes_[node]); at != slots_.end()) return at->second;
    if (script != nullptr && script->processes && !nodes_.empty()) {
      return std::max<uint32_t>(1, *script->processes / static_cast<uint32_t>(nodes_.size()));
    }
    for (const auto& [i, variables] : environments_) {
      if (const auto local = number_in(variables, {"LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE",
                                                   "HOROVOD_LOCAL_SIZE", "SLURM_NTASKS_PER_NODE"}))
        return *local;
    }
    return 1;
  }

  // Processes that mpirun or horovodrun is asked for where every host says how many it takes.
  [[nodiscard]] std::optional<uint32_t> asked_for() const {
    for (const auto& [i, script] : scripts_) {
      if (script.launcher != pb::MPIRUN && script.launcher != pb::HOROVODRUN) continue;
      if (script.processes && slots_.size() == nodes_.size()) return script.processes;
    }
    return std::nullopt;
  }

  void place_ranks() {
    pb::Launch& launch = *out_.document.mutable_launch();
    fill_launch(launch);
    if (!place_recorded_ranks(launch)) {
      uint32_t rank = 0;
      const uint32_t most = std::min(kMostRanks, asked_for().value_or(kMostRanks));
      for (uint32_t n = 0; n < nodes_.size(); ++n) {
        const uint32_t count = processes_on(n);
        for (uint32_t local = 0; local < count && rank < most; ++local, ++rank) {
          pb::RankLaunch& out = *launch.add_ranks();
          out.set_rank(rank);
          out.set_node(n);
          out.set_gpu(local);
          for (const auto& [name, value] : variables_of(n)) (*out.mutable_env())[name] = value;
          if (const auto group = node_rank_of(n)) (*out.mutable_env())["GROUP_RANK"] = *group;
          add_own_launch(n, *out.mutable_env());
        }
      }
      if (const auto asked = asked_for(); asked && *asked > rank) launch.set_world_size(*asked);
    }
    for (size_t i : of_kind(FileKind::kTfConfig)) {
      for (pb::RankLaunch& rank : *launch.mutable_ranks()) {
        const auto& nodes = out_.roles[i].nodes;
        if (!nodes.empty() && std::find(nodes.begin(), nodes.end(), rank.node()) == nodes.end())
          continue;
        (*rank.mutable_env())["TF_CONFIG"] = files_[i].text;
      }
    }
  }

  // What torchrun tells its processes, where each node has a script of its own.
  void add_own_launch(uint32_t node, google::protobuf::Map<std::string, std::string>& env) const {
    const LaunchScript* script = scripts_.size() > 1 ? script_of(node) : nullptr;
    if (script == nullptr || script->launcher != pb::TORCHRUN) return;
    const auto add = [&](const char* name, const std::string& value) {
      if (!value.empty() && env.count(name) == 0) env[name] = value;
    };
    add("MASTER_ADDR", script->master_addr);
    if (script->master_port) add("MASTER_PORT", std::to_string(*script->master_port));
    if (script->processes_per_node)
      add("LOCAL_WORLD_SIZE", std::to_string(*script->processes_per_node));
  }

  // The node rank that torchrun is given there, where the node's own script or environment says so.
  [[nodiscard]] std::optional<std::string> node_rank_of(uint32_t node) const {
    for (const auto& [i, script] : scripts_) {
      const auto& nodes = out_.roles[i].nodes;
      const bool own = std::find(nodes.begin(), nodes.end(), node) != nodes.end();
      if (script.launcher != pb::TORCHRUN || (!own && !nodes.empty())) continue;
      if (own && script.node_rank) return std::to_string(*script.node_rank);
      const Variables variables = variables_of(node);
      const auto at = variables.find(script.node_rank_variable);
      if (at != variables.end()) return at->second;
    }
    return std::nullopt;
  }

  // Dumps of single processes: they say which rank they are. False when there are none.
  bool place_recorded_ranks(pb::Launch& launch) {
    const std::initializer_list<const char*> kRank = {"RANK", "OMPI_COMM_WORLD_RANK",
                                                      "HOROVOD_RANK", "SLURM_PROCID"};
    std::vector<std::pair<uint32_t, size_t>> dumps;  // rank and file
    for (const auto& [i, variables] : environments_) {
      if (const auto rank = number_in(variables, kRank)) dumps.emplace_back(*rank, i);
    }
    if (dumps.empty() || dumps.size() < environments_.size()) return false;
    std::sort(dumps.begin(), dumps.end());
    uint32_t started = 0;
    for (uint32_t n = 0; n < nodes_.size(); ++n) started += processes_on(n);
    const bool counted = !scripts_.empty() || !slots_.empty();
    uint32_t position = 0;
    for (const auto& [rank, file] : dumps) {
      pb::RankLaunch& out = *launch.add_ranks();
      const Variables& variables = environments_.at(file);
      // Of two processes with one rank both are there; their own number tells them apart.
      out.set_rank(position++);
      out.set_node(out_.roles[file].nodes.empty() ? 0 : out_.roles[file].nodes.front());
      out.set_gpu(number_in(variables, {"LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK",
                                        "HOROVOD_LOCAL_RANK", "SLURM_LOCALID"})
                      .value_or(0));
      for (const auto& [name, value] : variables_of(out.node())) (*out.mutable_env())[name] = value;
      for (const auto& [name, value] : variables) (*out.mutable_env())[name] = value;
    }
    const uint32_t told =
        number_in(environments_.begin()->second,
                  {"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "HOROVOD_SIZE", "SLURM_NTASKS"})
            .value_or(0);
    // A sample of the ranks: how many there are is known from elsewhere or not at all.
    if (dumps.size() < told && !(counted && started == dumps.size())) {
      out_.findings.add("ranks-sampled", Severity::kInfo,
                        fmt::format("{} of {} ranks", dumps.size(), told),
                        "rules that compare all ranks see only these");
      for (pb::RankLaunch& rank : *launch.mutable_ranks()) {
        for (const char* name :
             {"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "HOROVOD_SIZE", "SLURM_NTASKS", "RANK"})
          rank.mutable_env()->erase(name);
      }
      launch.set_world_size(static_cast<uint32_t>(launch.ranks_size()));
    }
    return true;
  }

  // Where a script and the dump of its node disagree, the dump counts; that is said.
  void compare_scripts() {
    for (uint32_t n = 0; n < nodes_.size(); ++n) {
      const LaunchScript* script = script_of(n);
      if (script == nullptr) continue;
      const Variables there = variables_of(n);
      for (const auto& [name, value] : script->variables) {
        const auto at = there.find(name);
        if (at == there.end() || at->second == value) continue;
        out_.findings.add("script-differs-from-dump", Severity::kInfo,
                          fmt::format("{} is {} in the script and {} in the dump of {}", name,
                                      value, at->second, nodes_[n]),
                          "the dump counts; take it inside the job (srun env, mpirun env)");
      }
    }
  }

  // What all processes of a node have: of the script and of the node's own dump, which was taken inside it.
  [[nodiscard]] Variables variables_of(uint32_t node) const {
    Variables out;
    if (const LaunchScript* script = script_of(node)) out = script->variables;
    for (const auto& [i, variables] : environments_) {
      const auto& nodes = out_.roles[i].nodes;
      const bool own = nodes.empty() || std::find(nodes.begin(), nodes.end(), node) != nodes.end();
      if (!own ||
          number_in(variables, {"RANK", "OMPI_COMM_WORLD_RANK", "HOROVOD_RANK", "SLURM_PROCID"}))
        continue;
      for (const auto& [name, value] : variables) out[name] = value;
    }
    return out;
  }

  void fill_launch(pb::Launch& launch) {
    for (const auto& [i, script] : scripts_) {
      if (script.launcher != pb::LAUNCHER_UNSPECIFIED) launch.set_launcher(script.launcher);
      if (!script.master_addr.empty()) launch.set_master_addr(script.master_addr);
      if (script.master_port) launch.set_master_port(*script.master_port);
      if (listed_ && script.launcher == pb::TORCHRUN && script.nodes.value_or(1) > nodes_.size()) {
        launch.set_world_size(*script.nodes * script.processes_per_node.value_or(1));
      }
      const bool several = script.launchers_per_node.value_or(1) > 1;
      const bool other_nodes = script.allocated_nodes && script.nodes != script.allocated_nodes;
      if (script.processes_per_node && script.nodes && (several || other_nodes)) {
        launch.set_world_size(*script.nodes * *script.processes_per_node);
      }
    }
    const auto any = [&](const char* name) {
      return std::any_of(environments_.begin(), environments_.end(),
                         [&](const auto& each) { return each.second.count(name) > 0; });
    };
    if (launch.launcher() == pb::TORCHRUN || any("TORCHELASTIC_RUN_ID") || any("MASTER_ADDR"))
      launch.set_framework(pb::PYTORCH);
    if (launch.launcher() == pb::HOROVODRUN || any("HOROVOD_SIZE"))
      launch.set_framework(pb::HOROVOD);
    if (any("TF_CONFIG") || !of_kind(FileKind::kTfConfig).empty())
      launch.set_framework(pb::TENSORFLOW);
    for (const pb::Node& node : out_.document.platform().nodes()) {
      const auto& versions = node.versions();
      if (const auto at = versions.find("nccl"); at != versions.end())
        launch.set_nccl_version(at->second);
    }
  }

  void read_training() {
    for (size_t i : of_kind(FileKind::kTrainingScript)) {
      read_training_script(files_[i].text, tables_, out_.document, out_.findings);
    }
  }

  std::span<const ClusterFile> files_;
  const pb::CheckTables& tables_;
  std::map<size_t, LaunchScript> scripts_;
  std::map<size_t, Variables> environments_;
  std::vector<std::string> nodes_;
  std::map<std::string, uint32_t> slots_;
  bool listed_ = false;  // a hostfile names the nodes
  Collected out_;
};

}  // namespace

Result<Collected> collect(std::span<const ClusterFile> files, const pb::CheckTables& tables) {
  return Collector(files, tables).make();
}

}  // namespace rehearse::faults
