// SPDX-License-Identifier: Apache-2.0
#include "cli/table.hpp"

#include <algorithm>
#include <numeric>

#include "base/text.hpp"

namespace rehearse::cli {
namespace {

constexpr int kGap = 2;
constexpr int kNarrowest = 16;  // a wrapped column keeps this many

std::string padded(const std::string& text, int width, Align align) {
  const int missing = std::max(0, width - display_width(text));
  const std::string blanks(static_cast<size_t>(missing), ' ');
  return align == Align::kRight ? blanks + text : text + blanks;
}

// A word stays whole: a column is never narrower than its longest.
int longest_word(const std::string& text) {
  int longest = 0;
  for (const std::string& word : split(text, ' ')) longest = std::max(longest, display_width(word));
  return longest;
}

void trim_right(std::string& line) {
  while (!line.empty() && line.back() == ' ') line.pop_back();
}

}  // namespace

std::vector<std::string> wrap(const std::string& text, int width) {
  if (width <= 0 || display_width(text) <= width) return {text};
  std::vector<std::string> lines;
  std::string line;
  for (const std::string& word : split(text, ' ')) {
    if (!line.empty() && display_width(line) + 1 + display_width(word) > width) {
      lines.push_back(std::move(line));
      line.clear();
    }
    if (!line.empty()) line += ' ';
    line += word;
  }
  lines.push_back(std::move(line));
  return lines;
}

namespace {

// Columns without what only colours.
int shown_width(std::string_view text) {
  int hidden = 0;
  for (size_t at = 0; (at = text.find("\x1b[", at)) != text.npos;) {
    const size_t end = std::min(text.find('m', at), text.size() - 1);
    hidden += static_cast<int>(end + 1 - at);
    at = end;
  }
  return display_width(text) - hidden;
}

// Where the lines begin that follow a broken one.
int hanging(std::string_view line, int width) {
  const size_t begin = std::min(line.find_first_not_of(' '), line.size());
  const size_t blank = std::min(line.find(' ', begin), line.size());
  const size_t words = std::min(line.find_first_not_of(' ', blank), line.size());
  const int behind = shown_width(line.substr(0, words));
  return words - blank > 1 && behind <= width / 2 ? behind : static_cast<int>(begin) + 2;
}

void add_fitted(std::string_view line, int width, std::string& out) {
  if (shown_width(line) <= width) {
    out += line;
    return;
  }
  const int hang = hanging(line, width);
  int column = 0;
  for (size_t at = 0; at < line.size();) {
    const size_t word = line.find_first_not_of(' ', at);
    if (word == line.npos) return;
    const size_t end = std::min(line.find(' ', word), line.size());
    int blanks = static_cast<int>(word - at);
    const std::string_view letters = line.substr(word, end - word);
    if (column > hang && column + blanks + shown_width(letters) > width) {
      out += '\n';
      column = 0;
      blanks = hang;
    }
    out.append(static_cast<size_t>(blanks), ' ');
    out += letters;
    column += blanks + shown_width(letters);
    at = end;
  }
}

}  // namespace

std::string fit(std::string_view text, int width) {
  if (width <= 0) return std::string(text);
  std::string out;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    add_fitted(text.substr(0, end), width, out);
    if (end == text.npos) break;
    out += '\n';
    text.remove_prefix(end + 1);
  }
  return out;
}

Table::Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

void Table::add(std::vector<std::string> cells) {
  cells.resize(columns_.size());
  rows_.push_back(std::move(cells));
}

// The first cell stands for the row; the others follow with their headings.
std::string Table::records(const Terminal& terminal) const {
  int widest = 0;
  for (size_t c = 1; c < columns_.size(); ++c) {
    widest = std::max(widest, display_width(columns_[c].heading));
  }
  constexpr int kIndent = 2, kFewest = 12;
  widest = std::min(widest, std::max(kFewest, terminal.width() / 2 - kIndent - kGap));
  const int rest = std::max(kFewest, terminal.width() - kIndent - widest - kGap);
  std::string out;
  for (const auto& row : rows_) {
    const std::string& heading = columns_[0].heading;
    for (const std::string& line :
         wrap(heading.empty() ? row[0] : heading + ": " + row[0], terminal.width())) {
      out += terminal.styled(Style::kBold, line) + '\n';
    }
    for (size_t c = 1; c < columns_.size(); ++c) {
      if (row[c].empty()) continue;
      const auto names = wrap(columns_[c].heading, widest), cells = wrap(row[c], rest);
      for (size_t l = 0; l < std::max(names.size(), cells.size()); ++l) {
        std::string line(kIndent, ' ');
        line += padded(l < names.size() ? names[l] : "", widest, Align::kLeft);
        line.append(kGap, ' ');
        if (l < cells.size()) line += cells[l];
        trim_right(line);
        out += line + '\n';
      }
    }
  }
  return out;
}

std::string Table::text(const Terminal& terminal) const {
  std::vector<int> widths, narrowest;
  bool headings = false;
  for (size_t c = 0; c < columns_.size(); ++c) {
    int width = display_width(columns_[c].heading), word = kNarrowest;
    headings = headings || width > 0;
    for (const auto& row : rows_) {
      width = std::max(width, display_width(row[c]));
      word = std::max(word, longest_word(row[c]));
    }
    widths.push_back(width);
    narrowest.push_back(word);
  }
  // Texts give way, the longest first; figures are never broken.
  int over = std::accumulate(widths.begin(), widths.end(), 0) +
             kGap * (static_cast<int>(columns_.size()) - 1) - terminal.width();
  while (terminal.width() > 0 && over > 0) {
    size_t widest = columns_.size();
    for (size_t c = 0; c < columns_.size(); ++c) {
      if (columns_[c].align == Align::kRight || widths[c] <= narrowest[c]) continue;
      if (widest == columns_.size() || widths[c] > widths[widest]) widest = c;
    }
    if (widest == columns_.size()) break;
    int next = narrowest[widest];  // as wide as the next one, so that both give way from there
    for (size_t c = 0; c < columns_.size(); ++c) {
      if (c != widest && columns_[c].align == Align::kLeft && widths[c] < widths[widest]) {
        next = std::max(next, widths[c]);
      }
    }
    const int less = std::min(over, std::max(1, widths[widest] - next));
    widths[widest] -= less;
    over -= less;
  }
  if (terminal.width() > 0 && over > 0 && headings) return records(terminal);

  std::string out;
  const auto put = [&](const std::vector<std::string>& cells, bool heading) {
    std::vector<std::vector<std::string>> wrapped;
    size_t height = 1;
    for (size_t c = 0; c < cells.size(); ++c) {
      wrapped.push_back(wrap(cells[c], widths[c]));
      height = std::max(height, wrapped.back().size());
    }
    for (size_t l = 0; l < height; ++l) {
      std::string line;
      for (size_t c = 0; c < cells.size(); ++c) {
        if (c > 0) line.append(kGap, ' ');
        line += padded(l < wrapped[c].size() ? wrapped[c][l] : "", widths[c], columns_[c].align);
      }
      trim_right(line);
      out += heading ? terminal.styled(Style::kBold, line) : line;
      out += '\n';
    }
  };
  if (headings) {
    std::vector<std::string> cells;
    for (const Column& column : columns_) cells.push_back(column.heading);
    put(cells, true);
  }
  for (const auto& row : rows_) put(row, false);
  return out;
}

}  // namespace rehearse::cli
