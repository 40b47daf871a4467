// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

#include "base/environment.hpp"
#include "base/text.hpp"
#include "faults/check/files/collect.hpp"
#include "platforms/import/import.hpp"

namespace rehearse::faults {
namespace {

constexpr size_t kLinesLookedAt = 2000;

struct LineCounts {
  size_t all = 0, variables = 0, hosts = 0, packages = 0;
};

bool is_host_line(const std::vector<std::string>& words) {
  const auto host = [](const std::string& word) {
    return !word.empty() && std::isalnum(static_cast<unsigned char>(word.front())) != 0 &&
           std::all_of(word.begin(), word.end(), [](char c) {
             return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
                    std::string_view(".-_:").find(c) != std::string_view::npos;
           });
  };
  if (!host(words[0])) return false;
  return std::all_of(words.begin() + 1, words.end(), [](const std::string& word) {
    return word.starts_with("slots=") || word.starts_with("max_slots=") ||
           word.starts_with("max-slots=");
  });
}

bool is_package_line(const std::string& line, const std::vector<std::string>& words) {
  // The head of `pip list`.
  if (words.size() >= 2 && words[0] == "Package" && words[1] == "Version") return true;
  if (words[0].find_first_not_of('-') == std::string::npos && words.size() >= 2) return true;
  if (line.find("==") != line.npos) return words.size() == 1;
  // A word in quotes can be empty.
  return words.size() == 2 && !words[1].empty() &&
         std::isdigit(static_cast<unsigned char>(words[1].front())) != 0 &&
         words[1].find('.') != std::string::npos;
}

LineCounts count_lines(std::string_view text) {
  LineCounts out;
  for (const std::string& line : split(text, '\n')) {
    if (out.all >= kLinesLookedAt) break;
    const std::vector<std::string> words = shell_words(line, {});
    if (words.empty()) continue;
    ++out.all;
    if (!read_environment(line).empty()) ++out.variables;
    if (is_package_line(line, words)) {
      ++out.packages;
    } else if (is_host_line(words)) {
      ++out.hosts;
    }
  }
  return out;
}

bool has_line(std::string_view text, std::string_view begin) {
  return text.starts_with(begin) || text.find("\n" + std::string(begin)) != text.npos;
}

// A line of `ip -br addr`: "lo  UNKNOWN  127.0.0.1/8".
bool has_brief_loopback(std::string_view text) {
  for (const std::string& line : split(text, '\n')) {
    if (!line.starts_with("lo ")) continue;
    const std::vector<std::string> words = shell_words(line, {});
    return words.size() >= 3 && words[1] == "UNKNOWN" && words[2].find('/') != std::string::npos;
  }
  return false;
}

// Every line of `ip route` leaves by a device; `route -n` and `netstat -rn` have a head.
bool is_routing_table(std::string_view text) {
  if (has_line(text, "Kernel IP routing table")) return true;
  size_t lines = 0;
  for (const std::string& line : split(text, '\n')) {
    const std::vector<std::string> words = shell_words(line, {});
    if (words.empty()) continue;
    const bool leads = words[0] == "default" || words[0].find('/') != std::string::npos ||
                       words[0].find('.') != std::string::npos;
    if (!leads || std::find(words.begin(), words.end(), "dev") == words.end()) return false;
    ++lines;
  }
  return lines > 0;
}

bool has_any(std::string_view text, std::initializer_list<std::string_view> parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [&](std::string_view part) { return text.find(part) != text.npos; });
}

}  // namespace

FileKind file_kind(std::string_view text) {
  if (invalid_utf8(text) != std::string_view::npos || text.find('\0') != text.npos)
    return FileKind::kUnknown;
  if (has_line(text, "CA '") || has_line(text, "Infiniband device '") || has_line(text, "hca_id:"))
    return FileKind::kIbstat;
  if (has_any(text, {"> mtu "}) && has_any(text, {"<LOOPBACK", "<BROADCAST", "link/"}))
    return FileKind::kIpAddr;
  if (has_any(text, {": flags="}) && has_any(text, {"  mtu "})) return FileKind::kIpAddr;
  if (has_any(text, {"1: lo    inet ", "1: lo inet "}) || has_brief_loopback(text))
    return FileKind::kIpAddr;
  if (is_routing_table(text)) return FileKind::kRoutes;
  if (platforms::format_of(text) == platforms::ImportFormat::kNvidiaSmi) return FileKind::kTopology;
  if (has_any(text, {"Driver Version:", "Cuda compilation tools", "(Open MPI)"}))
    return FileKind::kVersions;
  if (has_any(text, {"/dev/shm\n"}) && has_any(text, {"Filesystem", "tmpfs", "shm "}))
    return FileKind::kSharedMemory;
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (json.is_object() && json.contains("cluster")) return FileKind::kTfConfig;
  if (has_line(text, "import torch") || has_line(text, "import tensorflow") ||
      has_line(text, "import horovod") || has_line(text, "from torch") ||
      has_line(text, "import keras")) {
    return FileKind::kTrainingScript;
  }
  const LineCounts counts = count_lines(text);
  if (text.starts_with("#!") || has_line(text, "#SBATCH") ||
      has_any(text,
              {"torchrun ", "mpirun ", "mpiexec ", "horovodrun ", "srun ", "torch.distributed.run ",
               "torch.distributed.launch ", "deepspeed ", "accelerate launch "})) {
    return FileKind::kLaunchScript;
  }
  if (counts.all == 0) return FileKind::kUnknown;
  if (counts.packages * 3 >= counts.all * 2) return FileKind::kVersions;
  if (counts.variables * 3 >= counts.all * 2) return FileKind::kEnvironment;
  if (counts.hosts == counts.all) return FileKind::kHostfile;
  return FileKind::kUnknown;
}

const char* name_of(FileKind kind) {
  switch (kind) {
    case FileKind::kEnvironment:
      return "environment";
    case FileKind::kLaunchScript:
      return "launch script";
    case FileKind::kTrainingScript:
      return "training script";
    case FileKind::kHostfile:
      return "hostfile";
    case FileKind::kIpAddr:
      return "interfaces";
    case FileKind::kRoutes:
      return "routes";
    case FileKind::kIbstat:
      return "adapters";
    case FileKind::kTopology:
      return "topology";
    case FileKind::kVersions:
      return "versions";
    case FileKind::kSharedMemory:
      return "shared memory";
    case FileKind::kTfConfig:
      return "TF_CONFIG";
    default:
      return "not understood";
  }
}

}  // namespace rehearse::faults
