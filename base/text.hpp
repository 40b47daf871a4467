// SPDX-License-Identifier: Apache-2.0
// Names and their nearest neighbours. Pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rehearse {

// Letters to change, add, drop or swap to make one of the other (case-blind, `-` = `_`).
[[nodiscard]] size_t edit_distance(std::string_view a, std::string_view b);

// The candidate with the smallest edit distance to `name` (case-blind, `-` = `_`), or "" when none
// is close enough to be a likely slip of the pen.
[[nodiscard]] std::string nearest(std::string_view name, std::span<const std::string> candidates);

// Splits at a character; empty parts are kept.
[[nodiscard]] std::vector<std::string> split(std::string_view text, char separator);

// ASCII letters in lower case.
[[nodiscard]] std::string lower_case(std::string_view text);

// "a, b and c".
[[nodiscard]] std::string join_words(std::span<const std::string> words);

// Ranks as ranges: {0,1,2,5} -> "0-2,5".
[[nodiscard]] std::string format_ranks(std::span<const uint32_t> ranks);

// Text of a user for an error message: in single quotes, shortened, control characters replaced.
[[nodiscard]] std::string in_quotes(std::string_view text);

// Offset of the first byte that is not valid UTF-8, or npos.
[[nodiscard]] size_t invalid_utf8(std::string_view text);

}  // namespace rehearse
