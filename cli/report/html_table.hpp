// SPDX-License-Identifier: Apache-2.0
// A table of the page. Every cell carries the title of its column: on a phone a row becomes a block of named lines, so
// that nothing is cut off (page.css).
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace rehearse::cli {

enum class Cells { kWords, kNames, kFigures };

struct HtmlColumn {
  std::string title;  // text, not markup
  Cells cells = Cells::kWords;
};

class HtmlTable {
 public:
  explicit HtmlTable(std::vector<HtmlColumn> columns, std::string table_class = "")
      : columns_(std::move(columns)), class_(std::move(table_class)) {}

  // Cells are markup, by column; none for columns at the end that have nothing. `row_class`: of page.css.
  void add(const std::vector<std::string>& cells, const std::string& row_class = "");

  [[nodiscard]] std::string html() const;

 private:
  std::vector<HtmlColumn> columns_;
  std::string class_;
  std::string rows_;
};

}  // namespace rehearse::cli
