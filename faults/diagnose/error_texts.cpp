// SPDX-License-Identifier: Apache-2.0
#include "faults/diagnose/error_texts.hpp"

#include <cctype>
#include <charconv>
#include <string_view>

namespace rehearse::faults {

std::set<uint32_t> ranks_named_in(const std::string& text) {
  constexpr std::string_view kRank = "rank ";
  std::set<uint32_t> out;
  for (size_t at = text.find(kRank); at != text.npos; at = text.find(kRank, at + 1)) {
    uint32_t rank = 0;
    const char* digits = text.data() + at + kRank.size();
    if (std::from_chars(digits, text.data() + text.size(), rank).ec == std::errc{}) {
      out.insert(rank);
    }
  }
  return out;
}

std::string text_kind(const std::string& text) {
  std::string out;
  bool number = false;
  char before = ' ';
  for (const char c : text) {
    // Digits inside a name (mlx5_6, fp16) are part of it.
    const bool named = std::isalpha(static_cast<unsigned char>(before)) != 0 || before == '_';
    const bool digit = std::isdigit(static_cast<unsigned char>(c)) != 0 && (number || !named);
    if (digit && !number) out += '#';
    number = digit || (number && (c == '.' || c == ','));
    if (!number) out += c;
    before = c;
  }
  return out;
}

}  // namespace rehearse::faults
