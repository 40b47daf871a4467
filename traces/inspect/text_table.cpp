// SPDX-License-Identifier: Apache-2.0
#include "traces/inspect/text_table.hpp"

#include <algorithm>

#include "traces/model/utf8.hpp"

namespace rehearse::traces {
namespace {

constexpr size_t kGap = 2;
constexpr size_t kLeastFirst = 12;

bool continues(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

size_t columns(std::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return !continues(c); }));
}

std::string shortened(const std::string& text, size_t width) {
  if (columns(text) <= width) return text;
  size_t end = 0, kept = 0;
  while (end < text.size() && (continues(text[end]) || kept < width - 3)) {
    kept += continues(text[end]) ? 0 : 1;
    ++end;
  }
  return text.substr(0, end) + "...";
}

}  // namespace

std::string printable(std::string_view text) {
  std::string out = to_utf8(text);
  for (char& c : out) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  }
  return out;
}

void TextTable::add(std::vector<std::string> cells) {
  cells.resize(rows_.front().size());
  rows_.push_back(std::move(cells));
}

std::string TextTable::render(int width) const {
  std::vector<size_t> widths(rows_.front().size(), 0);
  for (const auto& row : rows_) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], columns(row[i]));
  }
  size_t others = 0;
  for (size_t i = 1; i < widths.size(); ++i) others += widths[i] + kGap;
  const size_t room = static_cast<size_t>(std::max(width, 1));
  widths[0] =
      std::min(widths[0], std::max(kLeastFirst, room > others + kGap ? room - others - kGap : 0));
  std::string out;
  for (const auto& row : rows_) {
    const std::string first = shortened(row[0], widths[0]);
    std::string line = "  " + first;
    if (row.size() > 1) line.append(widths[0] - columns(first), ' ');
    for (size_t i = 1; i < row.size(); ++i) {
      line.append(kGap + widths[i] - columns(row[i]), ' ');
      line += row[i];
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + '\n';
  }
  return out;
}

}  // namespace rehearse::traces
