// SPDX-License-Identifier: Apache-2.0
#include "traces/capture_file/step_names.hpp"

#include <algorithm>
#include <array>
#include <charconv>

namespace rehearse::capture_file {
namespace {

// Lower case; blanks, '_' and '-' between words are not compared.
constexpr std::array<std::string_view, 10> kFamilies = {
    "profilerstep",   "globalstep", "trainstep", "trainingstep", "trainingiteration",
    "trainiteration", "step",       "iteration", "iter",         "batch"};

bool is_blank(char c) { return c == ' ' || c == '_' || c == '-'; }

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

// What follows `word` in `text`, or nothing.
std::optional<std::string_view> after(std::string_view text, std::string_view word) {
  size_t i = 0;
  for (const char w : word) {
    while (i < text.size() && i > 0 && is_blank(text[i])) ++i;
    if (i >= text.size() || lower(text[i]) != w) return std::nullopt;
    ++i;
  }
  return text.substr(i);
}

}  // namespace

std::string_view without_number(std::string_view name) {
  size_t end = name.size();
  for (const std::string_view tail :
       {", seq = ", ", op_id = ", ", sizes = ", ", input_op_ids = "}) {
    end = std::min(end, name.find(tail));
  }
  return name.substr(0, end);
}

std::optional<StepName> step_of(std::string_view range) {
  if (range.size() > 64) return std::nullopt;
  for (size_t family = 0; family < kFamilies.size(); ++family) {
    auto rest = after(range, kFamilies[family]);
    if (!rest) continue;
    while (!rest->empty() && (is_blank(rest->front()) || rest->front() == '#' ||
                              rest->front() == ':' || rest->front() == '=')) {
      rest->remove_prefix(1);
    }
    int64_t number = 0;
    const char* const end = rest->data() + rest->size();
    const auto [stop, error] = std::from_chars(rest->data(), end, number);
    if (error == std::errc() && stop == end && number >= 0) {
      return StepName{static_cast<int>(family), number};
    }
  }
  return std::nullopt;
}

}  // namespace rehearse::capture_file
