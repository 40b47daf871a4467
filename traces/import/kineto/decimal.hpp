// SPDX-License-Identifier: Apache-2.0
// Numbers as JSON writes them, read as decimal text: a double holds 1.7e15 us only to a quarter of
// a us. Pure functions; surrounding quotes and blanks are accepted.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace rehearse::traces::kineto {

// `text` times 10^`shift`, rounded half away from zero; nothing when it is no number or does not
// fit. Decimal microseconds as nanoseconds: shift 3.
[[nodiscard]] std::optional<int64_t> parse_decimal(std::string_view text, int shift);

[[nodiscard]] inline std::optional<int64_t> parse_integer(std::string_view text) {
  return parse_decimal(text, 0);
}

}  // namespace rehearse::traces::kineto
