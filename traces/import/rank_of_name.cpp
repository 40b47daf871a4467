// SPDX-License-Identifier: Apache-2.0
#include "traces/import/rank_of_name.hpp"

#include <charconv>

namespace rehearse::traces {
namespace {

std::optional<RankId> number_at(std::string_view text, size_t from) {
  RankId value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data() + from, end, value);
  if (error != std::errc() || value >= (1u << 24)) return std::nullopt;
  return value;
}

}  // namespace

std::optional<RankId> rank_of_name(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  std::optional<RankId> found;
  for (const std::string_view word : {"rank", "worker"}) {
    if (found) break;
    for (size_t at = name.find(word); at != std::string_view::npos; at = name.find(word, at + 1)) {
      size_t digits = at + word.size();
      if (digits < name.size() &&
          (name[digits] == '-' || name[digits] == '_' || name[digits] == '.'))
        ++digits;
      if (digits < name.size() && name[digits] >= '0' && name[digits] <= '9')
        found = number_at(name, digits);
    }
  }
  return found;
}

}  // namespace rehearse::traces
