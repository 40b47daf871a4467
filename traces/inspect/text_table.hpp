// SPDX-License-Identifier: Apache-2.0
// Rows of text in aligned columns: the first to the left, the others to the right. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rehearse::traces {

// Text that is safe on a terminal: UTF-8 without control characters.
[[nodiscard]] std::string printable(std::string_view text);

class TextTable {
 public:
  explicit TextTable(std::vector<std::string> titles) { rows_.push_back(std::move(titles)); }
  void add(std::vector<std::string> cells);  // as many as there are titles
  [[nodiscard]] bool empty() const { return rows_.size() < 2; }
  // Each row ends with a newline; the first column is shortened with "..." to stay within `width`.
  [[nodiscard]] std::string render(int width) const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace rehearse::traces
