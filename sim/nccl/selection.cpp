// SPDX-License-Identifier: Apache-2.0
#include "sim/nccl/selection.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace rehearse::sim {

namespace {

using Slip = SelectionSlip;

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

template <typename List>
Slip slip_of(Slip::Kind kind, std::string_view token, const List& names) {
  const std::vector<std::string> known(names.begin(), names.end());
  return {kind, std::string(token), rehearse::nearest(token, known)};
}

// One list of names; those that are unknown are told to `unknown` and switch nothing.
template <typename Unknown>
std::vector<Switch> switches_of(const Selection& selection, std::string_view list,
                                const Unknown& unknown) {
  const bool inverted = list.starts_with('^');
  if (inverted) list.remove_prefix(1);
  std::vector<Switch> switches(selection.elements.size(), inverted ? Switch::kOn : Switch::kOff);
  for (const std::string_view name : fields_of(list, ',')) {
    const auto at = std::find_if(selection.elements.begin(), selection.elements.end(),
                                 [&](auto each) { return equal_ignoring_case(name, each); });
    if (at == selection.elements.end()) {
      unknown(slip_of(Slip::Kind::kElement, name, selection.elements));
      continue;
    }
    switches[static_cast<std::size_t>(at - selection.elements.begin())] =
        inverted ? Switch::kOff : Switch::kOn;
  }
  return switches;
}

tl::expected<std::vector<Switch>, Slip> parse_list(const Selection& selection,
                                                   std::string_view list) {
  std::vector<Slip> slips;
  auto switches =
      switches_of(selection, list, [&](Slip slip) { slips.push_back(std::move(slip)); });
  if (!slips.empty()) return tl::unexpected(slips.front());
  return switches;
}

tl::expected<std::size_t, Slip> collective_index(std::string_view name) {
  std::vector<std::string_view> known;
  for (const Function function : kCollectives) {
    if (equal_ignoring_case(name, name_of(function))) return index_of(function);
    known.push_back(name_of(function));
  }
  return tl::unexpected(slip_of(Slip::Kind::kFunction, name, known));
}

}  // namespace

tl::expected<SwitchTable, SelectionSlip> parse_selection(const Selection& selection,
                                                         std::string_view text) {
  SwitchTable table;
  for (auto& row : table) row.assign(selection.elements.size(), Switch::kAuto);
  bool first = true;
  for (const std::string_view entry : fields_of(text, ';')) {
    const std::vector<std::string_view> parts = fields_of(entry, ':');
    if (parts.empty()) continue;
    if (parts.size() == 1 && !first) {
      return tl::unexpected(Slip{Slip::Kind::kNoFunction, std::string(entry), {}});
    }
    const auto switches = parse_list(selection, parts[parts.size() > 1 ? 1 : 0]);
    if (parts.size() > 1) {
      const auto function = collective_index(parts.front());
      if (!function) return tl::unexpected(function.error());
      if (!switches) return tl::unexpected(switches.error());
      table[*function] = *switches;
    } else {
      if (!switches) return tl::unexpected(switches.error());
      table.fill(*switches);
    }
    first = false;
  }
  return table;
}

SwitchTable parse_plain_selection(const Selection& selection, std::string_view text,
                                  std::vector<SelectionSlip>& passed_over) {
  SwitchTable table;
  table.fill(
      switches_of(selection, text, [&](Slip slip) { passed_over.push_back(std::move(slip)); }));
  return table;
}

}  // namespace rehearse::sim
