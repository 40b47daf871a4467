// SPDX-License-Identifier: Apache-2.0
#include "faults/check/files/launch_script.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/environment.hpp"
#include "base/text.hpp"
#include "faults/check/expression.hpp"

namespace rehearse::faults {
namespace {

constexpr size_t kMostNames = 65536;

// Lines that end in a backslash go on in the next.
std::vector<std::string> logical_lines(std::string_view text) {
  std::vector<std::string> out;
  std::string line;
  for (const std::string& part : split(text, '\n')) {
    if (part.ends_with('\\')) {
      line += part.substr(0, part.size() - 1) + ' ';
      continue;
    }
    out.push_back(line + part);
    line.clear();
  }
  if (!line.empty()) out.push_back(line);
  return out;
}

// Options of one command: "--nnodes=2" and "--nnodes 2" are the same, and so are `-` and `_`.
class Options {
 public:
  explicit Options(const std::vector<std::string>& words) : words_(words) {}

  [[nodiscard]] std::optional<std::string> get(
      std::initializer_list<std::string_view> names) const {
    for (size_t i = 0; i < words_.size(); ++i) {
      const size_t equals = words_[i].starts_with('-') ? words_[i].find('=') : std::string::npos;
      const std::string name = normal(words_[i].substr(0, equals));
      if (std::none_of(names.begin(), names.end(), [&](std::string_view n) { return name == n; }))
        continue;
      if (equals != std::string::npos) return words_[i].substr(equals + 1);
      if (i + 1 < words_.size()) return words_[i + 1];
    }
    return std::nullopt;
  }

  [[nodiscard]] std::optional<uint32_t> number(
      std::initializer_list<std::string_view> names) const {
    const auto text = get(names);
    // torchrun: --nnodes 2:4 is at least 2.
    return text ? whole_number(text->substr(0, text->find(':'))) : std::nullopt;
  }

 private:
  static std::string normal(std::string word) {
    for (size_t i = 2; i < word.size(); ++i) word[i] = word[i] == '_' ? '-' : word[i];
    return word;
  }
  const std::vector<std::string>& words_;
};

template <typename T>
void keep_first(std::optional<T>& into, const std::optional<T>& value) {
  if (!into) into = value;
}

// NAME of "$NAME" and "${NAME}"; empty for anything else.
std::string variable_in(std::string_view word) {
  if (!word.starts_with('$')) return {};
  word.remove_prefix(1);
  if (word.starts_with('{') && word.ends_with('}')) word = word.substr(1, word.size() - 2);
  return is_environment_name(word) ? std::string(word) : std::string();
}

void read_torchrun(const std::vector<std::string>& words, LaunchScript& out) {
  const Options options(words);
  out.launcher = pb::TORCHRUN;
  keep_first(out.nodes, options.number({"--nnodes"}));
  keep_first(out.processes_per_node, options.number({"--nproc-per-node"}));
  keep_first(out.node_rank, options.number({"--node-rank"}));
  if (const auto rank = options.get({"--node-rank"})) out.node_rank_variable = variable_in(*rank);
  if (const auto address = options.get({"--master-addr"})) out.master_addr = *address;
  keep_first(out.master_port, options.number({"--master-port"}));
  if (const auto endpoint = options.get({"--rdzv-endpoint"})) {
    const size_t colon = endpoint->rfind(':');
    out.master_addr = endpoint->substr(0, colon);
    if (colon != endpoint->npos)
      keep_first(out.master_port, whole_number(endpoint->substr(colon + 1)));
  }
  if (!out.nodes && !options.get({"--nnodes"})) out.nodes = 1;
  const auto processes = options.get({"--nproc-per-node"});
  out.one_per_gpu = processes == "gpu" || processes == "auto";
  if (!processes) out.processes_per_node = 1;
}

// Starts one process per GPU of the nodes of a hostfile.
void read_deepspeed(const std::vector<std::string>& words, LaunchScript& out) {
  const Options options(words);
  out.launcher = pb::TORCHRUN;
  keep_first(out.nodes, options.number({"--num-nodes"}));
  keep_first(out.processes_per_node, options.number({"--num-gpus"}));
  keep_first(out.node_rank, options.number({"--node-rank"}));
  if (const auto address = options.get({"--master-addr"})) out.master_addr = *address;
  keep_first(out.master_port, options.number({"--master-port"}));
}

void read_accelerate(const std::vector<std::string>& words, LaunchScript& out) {
  const Options options(words);
  out.launcher = pb::TORCHRUN;
  const uint32_t nodes = options.number({"--num-machines"}).value_or(1);
  keep_first(out.nodes, std::optional(nodes));
  // Of all machines together.
  if (const auto processes = options.number({"--num-processes"}); processes && nodes > 0) {
    keep_first(out.processes_per_node, std::optional(std::max(1u, *processes / nodes)));
  }
  keep_first(out.node_rank, options.number({"--machine-rank"}));
  if (const auto rank = options.get({"--machine-rank"}))
    out.node_rank_variable = variable_in(*rank);
  if (const auto address = options.get({"--main-process-ip"})) out.master_addr = *address;
  keep_first(out.master_port, options.number({"--main-process-port"}));
}

void read_mpirun(const std::vector<std::string>& words, LaunchScript& out) {
  const Options options(words);
  out.launcher = pb::MPIRUN;
  keep_first(out.processes, options.number({"-np", "-n", "--np", "-c"}));
  if (const auto hosts = options.get({"-H", "--host", "-host"})) out.hosts = read_host_list(*hosts);
  for (size_t i = 0; i + 1 < words.size(); ++i) {
    if (words[i] == "-x") {
      const size_t equals = words[i + 1].find('=');
      if (equals != std::string::npos)
        out.variables[words[i + 1].substr(0, equals)] = words[i + 1].substr(equals + 1);
    }
    // MPICH and Intel MPI.
    if (words[i] == "-genv" || words[i] == "-env") {
      const size_t equals = words[i + 1].find('=');
      if (equals != std::string::npos) {
        out.variables[words[i + 1].substr(0, equals)] = words[i + 1].substr(equals + 1);
      } else if (i + 2 < words.size() && is_environment_name(words[i + 1])) {
        out.variables[words[i + 1]] = words[i + 2];
      }
    }
    if ((words[i] == "--mca" || words[i] == "-mca") && i + 2 < words.size()) {
      out.variables["OMPI_MCA_" + words[i + 1]] = words[i + 2];
    }
  }
}

void read_horovodrun(const std::vector<std::string>& words, LaunchScript& out) {
  const Options options(words);
  out.launcher = pb::HOROVODRUN;
  keep_first(out.processes, options.number({"-np", "--num-proc"}));
  if (const auto hosts = options.get({"-H", "--hosts"})) out.hosts = read_host_list(*hosts);
  if (const auto interfaces = options.get({"--network-interfaces", "--network-interface"})) {
    out.variables["HOROVOD_GLOO_IFACE"] = *interfaces;
    out.variables["NCCL_SOCKET_IFNAME"] = *interfaces;
  }
}

// N of "gpu:N", "gpu:a100:N(S:0-1)", "a100:N" and "N".
std::optional<uint32_t> gpus_in(std::string_view text) {
  text = text.substr(0, text.find_first_of("(,"));
  const size_t colon = text.rfind(':');
  return whole_number(std::string(colon == text.npos ? text : text.substr(colon + 1)));
}

void read_slurm(const std::vector<std::string>& words, LaunchScript& out) {
  const Options options(words);
  const auto gres = options.get({"--gres"});
  auto gpus = options.get({"--gpus-per-node"});
  if (!gpus && gres && gres->starts_with("gpu")) gpus = gres;
  if (const auto count = gpus ? gpus_in(*gpus) : std::nullopt) {
    out.variables["SLURM_GPUS_ON_NODE"] = std::to_string(*count);
  }
  if (const auto tasks = options.number({"--ntasks-per-node"})) {
    out.variables["SLURM_NTASKS_PER_NODE"] = std::to_string(*tasks);
  }
  keep_first(out.processes, options.number({"--ntasks", "-n"}));
  keep_first(out.nodes, options.number({"--nodes", "-N"}));
  keep_first(out.processes_per_node, options.number({"--ntasks-per-node"}));
  if (const auto each = options.get({"--gpus-per-task"}))
    out.variables["SLURM_GPUS_PER_TASK"] = *each;
}

bool names_command(const std::string& word, std::string_view command) {
  return word == command || word.ends_with("/" + std::string(command));
}

void read_command(const std::vector<std::string>& words, LaunchScript& out) {
  bool by_slurm = false;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::vector<std::string> rest(words.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                                        words.end());
    const bool module =
        words[i] == "-m" && i + 1 < words.size() &&
        (words[i + 1] == "torch.distributed.run" || words[i + 1] == "torch.distributed.launch");
    const bool torchrun = names_command(words[i], "torchrun") || module;
    const bool deepspeed = names_command(words[i], "deepspeed");
    const bool accelerate =
        names_command(words[i], "accelerate") && !rest.empty() && rest[0] == "launch";
    if (torchrun || deepspeed || accelerate) {
      // What Slurm was told is about these launchers, each of which starts processes of its own.
      out.launchers_per_node = by_slurm ? out.processes_per_node : std::nullopt;
      out.allocated_nodes = by_slurm ? out.nodes : std::nullopt;
      out.processes_per_node.reset();
      out.nodes.reset();
      return torchrun    ? read_torchrun(rest, out)
             : deepspeed ? read_deepspeed(rest, out)
                         : read_accelerate(rest, out);
    }
    if (names_command(words[i], "mpirun") || names_command(words[i], "mpiexec"))
      return read_mpirun(rest, out);
    if (names_command(words[i], "horovodrun")) return read_horovodrun(rest, out);
    if (names_command(words[i], "srun")) {
      if (out.launcher == pb::LAUNCHER_UNSPECIFIED) out.launcher = pb::SRUN;
      read_slurm(rest, out);  // and go on: srun often starts torchrun
      by_slurm = true;
    }
  }
}

}  // namespace

std::vector<HostSlots> read_host_list(std::string_view list) {
  std::vector<HostSlots> out;
  for (const std::string& word : split(list, ',')) {
    const size_t colon = word.rfind(':');
    if (word.empty() || out.size() >= kMostNames) continue;
    out.push_back({word.substr(0, colon),
                   colon == word.npos ? std::nullopt : whole_number(word.substr(colon + 1))});
  }
  return out;
}

std::vector<HostSlots> read_hostfile(std::string_view text) {
  std::vector<HostSlots> out;
  for (const std::string& line : split(text, '\n')) {
    const std::vector<std::string> words = shell_words(line, {});
    if (words.empty() || out.size() >= kMostNames) continue;
    HostSlots host = read_host_list(words[0]).empty() ? HostSlots{words[0], {}}
                                                      : read_host_list(words[0]).front();
    for (const std::string& word : words) {
      if (word.starts_with("slots=")) host.slots = whole_number(word.substr(6));
    }
    out.push_back(std::move(host));
  }
  return out;
}

std::vector<std::string> expand_node_list(std::string_view list) {
  std::vector<std::string> out;
  for (size_t at = 0; at < list.size() && out.size() < kMostNames;) {
    size_t end = at;
    int depth = 0;
    while (end < list.size() && (depth > 0 || list[end] != ',')) {
      depth += list[end] == '[' ? 1 : list[end] == ']' ? -1 : 0;
      ++end;
    }
    const std::string part(list.substr(at, end - at));
    const size_t open = part.find('[');
    const size_t close = part.find(']');
    if (open == part.npos || close == part.npos || close < open) {
      if (!part.empty()) out.push_back(part);
    } else {
      for (const std::string& range :
           split(std::string_view(part).substr(open + 1, close - open - 1), ',')) {
        const std::string low = range.substr(0, range.find('-'));
        const std::string high =
            range.find('-') == range.npos ? low : range.substr(range.find('-') + 1);
        const auto first = whole_number(low), last = whole_number(high);
        if (!first || !last) continue;
        for (uint32_t i = *first; i <= *last && out.size() < kMostNames; ++i) {
          out.push_back(part.substr(0, open) + fmt::format("{:0{}}", i, low.size()) +
                        part.substr(close + 1));
        }
      }
    }
    at = end + 1;
  }
  return out;
}

LaunchScript read_launch_script(std::string_view text) {
  LaunchScript out;
  for (const std::string& line : logical_lines(text)) {
    if (line.starts_with("#SBATCH")) {
      read_slurm(shell_words(std::string_view(line).substr(7), {}), out);
      continue;
    }
    std::vector<std::string> words = shell_words(line, out.variables);
    if (!words.empty() && (words[0] == "export" || words[0] == "set")) words.erase(words.begin());
    size_t first = 0;
    for (; first < words.size(); ++first) {
      const size_t equals = words[first].find('=');
      if (equals == std::string::npos || !is_environment_name(words[first].substr(0, equals)))
        break;
      const std::string value = words[first].substr(equals + 1);
      // What a command or an unknown variable gives is not known.
      if (value.find('$') == value.npos && value.find('`') == value.npos) {
        out.variables[words[first].substr(0, equals)] = value;
      }
    }
    words.erase(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(first));
    read_command(words, out);
  }
  const auto unknown = [](const std::string& text_value) {
    return text_value.find('$') != std::string::npos;
  };
  if (unknown(out.master_addr)) out.master_addr.clear();
  return out;
}

}  // namespace rehearse::faults
