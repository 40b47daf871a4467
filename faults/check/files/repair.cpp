// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <numeric>
#include <optional>

#include "base/environment.hpp"
#include "faults/check/check.hpp"
#include "faults/check/files/collect.hpp"

namespace rehearse::faults {
namespace {

// "launch.ranks[rank=3].env.NAME" and the like.
struct VariableFix {
  std::string name;
  std::string value;
  std::optional<uint32_t> rank, node;  // neither: all ranks
};

std::optional<uint32_t> selected_number(const std::string& path, std::string_view key) {
  const size_t at = path.find(key);
  if (at == path.npos) return std::nullopt;
  uint32_t value = 0;
  const char* begin = path.data() + at + key.size();
  const auto [end, ec] = std::from_chars(begin, path.data() + path.size(), value);
  if (ec != std::errc()) return std::nullopt;
  return value;
}

std::optional<VariableFix> variable_fix(const std::string& path, const std::string& value) {
  const size_t env = path.find(".env.");
  if (!path.starts_with("launch.") || env == path.npos) return std::nullopt;
  return VariableFix{path.substr(env + 5), value, selected_number(path, "[rank="),
                     selected_number(path, "[node=")};
}

// Nodes whose files a fix goes into.
std::vector<uint32_t> nodes_of(const VariableFix& fix, const pb::Scenario& document) {
  if (fix.node) return {*fix.node};
  std::vector<uint32_t> out;
  if (fix.rank) {
    for (const pb::RankLaunch& each : document.launch().ranks()) {
      if (each.rank() == *fix.rank) out.push_back(each.node());
    }
    return out;
  }
  out.resize(static_cast<size_t>(std::max(1, document.platform().nodes_size())));
  std::iota(out.begin(), out.end(), 0u);
  return out;
}

}  // namespace

std::vector<std::string> repaired_files(std::span<const ClusterFile> files,
                                        const Collected& collected, const pb::CheckReport& report) {
  std::vector<std::string> texts;
  for (const ClusterFile& file : files) texts.push_back(file.text);
  std::vector<bool> changed(files.size(), false);
  for (const auto& [path, value] : fixes_in(report)) {
    const auto fix = variable_fix(path, value);
    if (!fix) continue;
    const auto holds_for = [&](const FileRole& role, uint32_t n) {
      return role.nodes.empty() ||
             std::find(role.nodes.begin(), role.nodes.end(), n) != role.nodes.end();
    };
    std::vector<bool> edited(files.size(), false);
    const auto edit = [&](size_t i) {
      if (edited[i]) return;
      edited[i] = true;
      const bool script = collected.roles[i].kind == FileKind::kLaunchScript;
      std::string next = with_variable(texts[i], fix->name, fix->value, script);
      changed[i] = changed[i] || next != texts[i];
      texts[i] = std::move(next);
    };
    const auto assigns = [&](size_t i) {
      const auto lines = read_environment(texts[i]);
      return std::any_of(lines.begin(), lines.end(),
                         [&](const VariableLine& line) { return line.name == fix->name; });
    };
    // On each node: where the variable is assigned now; else, to set it, the first file that holds for the node.
    for (const uint32_t n : nodes_of(*fix, collected.document)) {
      std::vector<size_t> settable, assigned;
      for (size_t i = 0; i < files.size(); ++i) {
        const FileKind kind = collected.roles[i].kind;
        if ((kind != FileKind::kEnvironment && kind != FileKind::kLaunchScript) ||
            !holds_for(collected.roles[i], n))
          continue;
        settable.push_back(i);
        if (edited[i] || assigns(i)) assigned.push_back(i);
      }
      for (size_t i : assigned) edit(i);
      if (assigned.empty() && !settable.empty() && !fix->value.empty()) edit(settable.front());
    }
  }
  for (size_t i = 0; i < texts.size(); ++i) {
    if (!changed[i]) texts[i].clear();
  }
  return texts;
}

}  // namespace rehearse::faults
