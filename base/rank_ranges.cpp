// SPDX-License-Identifier: Apache-2.0
#include "base/rank_ranges.hpp"

#include <charconv>

#include "base/text.hpp"

namespace rehearse {

Result<std::vector<RankRange>> parse_rank_ranges(std::string_view text) {
  std::vector<RankRange> out;
  for (const std::string& part : split(text, ',')) {
    RankRange range;
    const char* end = part.data() + part.size();
    auto read = std::from_chars(part.data(), end, range.first);
    range.last = range.first;
    if (read.ec == std::errc() && read.ptr != end && *read.ptr == '-') {
      read = std::from_chars(read.ptr + 1, end, range.last);
    }
    if (read.ec != std::errc() || read.ptr != end || range.last < range.first) {
      return fail(Code::kBadInput, in_quotes(part) + " is not a range of ranks", "",
                  "write 0-7,16");
    }
    out.push_back(range);
  }
  return out;
}

}  // namespace rehearse
