// SPDX-License-Identifier: Apache-2.0
// The lines of a text input, one after the other in bounded memory.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "traces/import/source.hpp"

namespace rehearse::traces {

class LineReader {
 public:
  // `source` outlives the reader. Longer lines than `max_line` bytes are cut there; the rest of
  // them is skipped and counted.
  LineReader(Source& source, size_t max_line);
  // False at the end. `line` has no line end (\n or \r\n) and is valid until the next call.
  [[nodiscard]] Result<bool> next(std::string_view& line);
  [[nodiscard]] uint64_t number() const { return number_; }  // of the last line, from 1
  [[nodiscard]] uint64_t cut_lines() const { return cut_lines_; }
  [[nodiscard]] std::string where() const;  // "file: line 17"

 private:
  [[nodiscard]] Result<bool> fill();

  Source& source_;
  size_t max_line_;
  std::vector<char> buffer_;
  size_t pos_ = 0, end_ = 0;
  std::string line_;
  uint64_t number_ = 0, cut_lines_ = 0;
};

}  // namespace rehearse::traces
