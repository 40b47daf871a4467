// SPDX-License-Identifier: Apache-2.0
#include "sim/nccl/selection.hpp"

#include <optional>
#include <string>

namespace rehearse::sim {

namespace {

// Fields between separators; empty ones do not count, as with strtok.
std::vector<std::string_view> fields_of(std::string_view text, char separator) {
  std::vector<std::string_view> fields;
  while (!text.empty()) {
    const std::size_t end = text.find(separator);
    if (end != 0) fields.push_back(text.substr(0, end));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return fields;
}

std::string listed(std::span<const std::string_view> names) {
  std::string text;
  for (const std::string_view name : names) {
    if (!text.empty()) text += ", ";
    text += name;
  }
  return text;
}

Result<std::vector<Switch>> parse_list(const Selection& selection, std::string_view list) {
  const bool inverted = list.front() == '^';
  if (inverted) list.remove_prefix(1);
  std::vector<Switch> switches(selection.elements.size(), inverted ? Switch::kOn : Switch::kOff);
  for (const std::string_view name : fields_of(list, ',')) {
    bool known = false;
    for (std::size_t i = 0; i < selection.elements.size() && !known; ++i) {
      if (!equal_ignoring_case(name, selection.elements[i])) continue;
      switches[i] = inverted ? Switch::kOff : Switch::kOn;
      known = true;
    }
    if (!known) {
      return fail(Code::kBadInput, "unknown name \"" + std::string(name) + "\"",
                  std::string(selection.variable), "use " + listed(selection.elements));
    }
  }
  return switches;
}

Result<std::size_t> collective_index(const Selection& selection, std::string_view name) {
  for (const Function function : kCollectives) {
    if (equal_ignoring_case(name, name_of(function))) return index_of(function);
  }
  return fail(Code::kBadInput, "unknown function \"" + std::string(name) + "\"",
              std::string(selection.variable),
              "use Broadcast, Reduce, AllGather, ReduceScatter or AllReduce");
}

}  // namespace

Result<SwitchTable> parse_selection(const Selection& selection, std::string_view text) {
  SwitchTable table;
  for (auto& row : table) row.assign(selection.elements.size(), Switch::kAuto);
  bool first = true;
  for (const std::string_view entry : fields_of(text, ';')) {
    const std::vector<std::string_view> parts = fields_of(entry, ':');
    if (parts.empty()) continue;
    if (parts.size() == 1) {
      if (!first) {
        return fail(Code::kBadInput, "\"" + std::string(entry) + "\" lacks its function",
                    std::string(selection.variable),
                    "only the first list holds for all functions; write function:list");
      }
      RH_TRY(const auto switches, parse_list(selection, parts[0]));
      table.fill(switches);
    } else {
      RH_TRY(const std::size_t function, collective_index(selection, parts[0]));
      RH_TRY(table[function], parse_list(selection, parts[1]));
    }
    first = false;
  }
  return table;
}

}  // namespace rehearse::sim
