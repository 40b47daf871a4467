// SPDX-License-Identifier: Apache-2.0
// Aligned columns. On a terminal that is too narrow columns of text are wrapped at words, the widest
// first; where even that does not fit, every row becomes a few lines, each a heading and a cell. In a pipe
// nothing is ever cut or wrapped.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/terminal.hpp"

namespace rehearse::cli {

// Bytes of a name that others made up (kernels of templates have kilobytes) in a cell; --json has them whole.
constexpr size_t kLongestName = 72;

enum class Align { kLeft, kRight };

struct Column {
  std::string heading;
  Align align = Align::kLeft;
};

class Table {
 public:
  explicit Table(std::vector<Column> columns);
  // One cell per column; missing ones are empty.
  void add(std::vector<std::string> cells);
  // Headings (when there are any), then the rows; every line ends with a newline.
  [[nodiscard]] std::string text(const Terminal& terminal) const;

 private:
  [[nodiscard]] std::string records(const Terminal& terminal) const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

// `text` broken at spaces into lines of at most `width` columns; 0: one line.
[[nodiscard]] std::vector<std::string> wrap(const std::string& text, int width);

// Lines of a text that are longer than `width` columns, broken at blanks; 0: as it is. What follows stands where the words
// of the line begin: behind its label where two blanks or more part it from them ("  for:     "), else two blanks deeper.
// Sequences that colour take no room.
[[nodiscard]] std::string fit(std::string_view text, int width);

}  // namespace rehearse::cli
