// SPDX-License-Identifier: Apache-2.0
// Lines of a CSV file and their fields (RFC 4180: quotes, doubled quotes, line ends inside quotes), in bounded
// memory.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "traces/import/source.hpp"

namespace rehearse::traces::csv {

class Lines {
 public:
  Lines(Source& source, char separator) : source_(source), separator_(separator) {}

  enum class Next {
    kLine,
    kEnd,
    kCut,  // the file ends inside quotes, or a compressed file ends early
  };
  // The next line that is not empty. kLimit for a line of more than 1 MiB.
  [[nodiscard]] Result<Next> next();
  // Fields of the line; valid until the next call.
  [[nodiscard]] const std::vector<std::string>& fields() const { return fields_; }
  [[nodiscard]] size_t count() const { return used_; }       // of fields
  [[nodiscard]] uint64_t number() const { return number_; }  // of the line in the file, from 1
  [[nodiscard]] bool ended_with_newline() const { return newline_; }

 private:
  [[nodiscard]] Result<int> byte();  // -1 at the end

  Source& source_;
  char separator_;
  std::vector<char> block_;
  size_t at_ = 0, size_ = 0;
  std::vector<std::string> fields_;
  size_t used_ = 0;
  uint64_t number_ = 0, next_number_ = 1;
  bool newline_ = true;
};

}  // namespace rehearse::traces::csv
