// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <optional>

#include "faults/check/check.hpp"
#include "faults/check/files/collect.hpp"
#include "base/environment.hpp"

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

}  // namespace

std::vector<std::string> repaired_files(std::span<const ClusterFile> files,
                                        const Collected& collected, const pb::CheckReport& report) {
  std::vector<std::string> texts;
  for (const ClusterFile& file : files) texts.push_back(file.text);
  std::vector<bool> changed(files.size(), false);
  const auto node_of_rank = [&](uint32_t rank) -> std::optional<uint32_t> {
    for (const pb::RankLaunch& each : collected.document.launch().ranks()) {
      if (each.rank() == rank) return each.node();
    }
    return std::nullopt;
  };
  for (const auto& [path, value] : fixes_in(report)) {
    const auto fix = variable_fix(path, value);
    if (!fix) continue;
    const auto node = fix->node ? fix->node : fix->rank ? node_of_rank(*fix->rank) : std::nullopt;
    const auto holds_for = [&](const FileRole& role) {
      return role.nodes.empty() || !node ||
             std::find(role.nodes.begin(), role.nodes.end(), *node) != role.nodes.end();
    };
    bool written = false;
    const auto edit = [&](size_t i) {
      const bool script = collected.roles[i].kind == FileKind::kLaunchScript;
      std::string next = with_variable(texts[i], fix->name, fix->value, script);
      changed[i] = changed[i] || next != texts[i];
      texts[i] = std::move(next);
      written = true;
    };
    // Where the variable is assigned now; else, to set it, the first file that holds for the rank.
    for (size_t i = 0; i < files.size(); ++i) {
      const FileKind kind = collected.roles[i].kind;
      if ((kind != FileKind::kEnvironment && kind != FileKind::kLaunchScript) ||
          !holds_for(collected.roles[i]))
        continue;
      const auto lines = read_environment(texts[i]);
      if (std::any_of(lines.begin(), lines.end(),
                      [&](const VariableLine& line) { return line.name == fix->name; }))
        edit(i);
    }
    for (size_t i = 0; i < files.size() && !written && !fix->value.empty(); ++i) {
      const FileKind kind = collected.roles[i].kind;
      if ((kind == FileKind::kEnvironment || kind == FileKind::kLaunchScript) &&
          holds_for(collected.roles[i]))
        edit(i);
    }
  }
  for (size_t i = 0; i < texts.size(); ++i) {
    if (!changed[i]) texts[i].clear();
  }
  return texts;
}

}  // namespace rehearse::faults
