// SPDX-License-Identifier: Apache-2.0
#include "faults/diagnose/error_texts.hpp"

#include <cctype>
#include <charconv>
#include <string_view>

namespace rehearse::faults {

std::set<uint32_t> ranks_named_in(const std::string& text) {
  std::set<uint32_t> out;
  const char* const end = text.data() + text.size();
  for (size_t at = text.find("rank"); at != text.npos; at = text.find("rank", at + 1)) {
    std::string_view rest = std::string_view(text).substr(at);
    const bool several = rest.starts_with("ranks: ");
    if (!several && !rest.starts_with("rank ")) continue;
    rest.remove_prefix(rest.find(' ') + 1);
    for (bool more = true; more;) {
      uint32_t rank = 0;
      const auto read = std::from_chars(rest.data(), end, rank);
      if (read.ec != std::errc{}) break;
      out.insert(rank);
      rest.remove_prefix(static_cast<size_t>(read.ptr - rest.data()));
      more = several && rest.starts_with(", ");
      if (more) rest.remove_prefix(2);
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
