// SPDX-License-Identifier: Apache-2.0
#include "traces/import/kineto/decimal.hpp"

#include <array>

namespace rehearse::traces::kineto {
namespace {

constexpr uint64_t kLargest = 9'223'372'036'854'775'807ULL;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string_view trim(std::string_view text) {
  const auto outer = [](char c) {
    return c == ' ' || c == '\n' || c == '\r' || c == '\t' || c == '"';
  };
  while (!text.empty() && outer(text.front())) text.remove_prefix(1);
  while (!text.empty() && outer(text.back())) text.remove_suffix(1);
  return text;
}

struct Digits {
  uint64_t value = 0;
  int scale = 0;         // value stands for value * 10^scale
  bool dropped = false;  // digits beyond the 19th were dropped
  int dropped_digit = 0;
};

// Reads digits with at most one point; `i` ends behind them.
std::optional<Digits> read_digits(std::string_view text, size_t& i) {
  Digits d;
  bool any = false, point = false;
  for (; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '.' && !point) {
      point = true;
      continue;
    }
    if (!is_digit(c)) break;
    any = true;
    const auto digit = static_cast<uint64_t>(c - '0');
    if (!d.dropped && d.value <= (kLargest - digit) / 10) {
      d.value = d.value * 10 + digit;
      if (point) --d.scale;
    } else {
      if (!d.dropped) d.dropped_digit = static_cast<int>(digit);
      d.dropped = true;
      if (!point) ++d.scale;
    }
  }
  if (!any) return std::nullopt;
  return d;
}

// Nearly all numbers: not negative, at most 19 digits when shifted, none of them cut off. Nothing when it takes
// more care than that.
std::optional<int64_t> parse_short(std::string_view text, int shift) {
  static constexpr std::array<uint64_t, 4> kPowers = {1, 10, 100, 1000};
  constexpr int kMostDigits = 19;  // any such number fits 64 bits
  while (!text.empty() && (text.back() == ' ' || text.back() == '\n')) text.remove_suffix(1);
  if (text.size() > kMostDigits + 1 || shift > 3) return std::nullopt;
  uint64_t value = 0;
  int digits = 0, behind = 0;
  bool point = false;
  for (const char c : text) {
    if (is_digit(c)) {
      value = value * 10 + static_cast<uint64_t>(c - '0');
      ++digits;
      behind += point ? 1 : 0;
    } else if (c == '.' && !point) {
      point = true;
    } else {
      return std::nullopt;
    }
  }
  if (digits == 0 || behind > shift || digits + shift - behind > kMostDigits) return std::nullopt;
  value *= kPowers[static_cast<size_t>(shift - behind)];
  return value <= kLargest ? std::optional(static_cast<int64_t>(value)) : std::nullopt;
}

}  // namespace

std::optional<int64_t> parse_decimal(std::string_view text, int shift) {
  if (const auto value = parse_short(text, shift)) return value;
  text = trim(text);
  size_t i = 0;
  bool negative = false;
  if (i < text.size() && (text[i] == '-' || text[i] == '+')) negative = text[i++] == '-';
  auto digits = read_digits(text, i);
  if (!digits) return std::nullopt;
  if (i < text.size() && (text[i] == 'e' || text[i] == 'E')) {
    ++i;
    bool down = false;
    if (i < text.size() && (text[i] == '-' || text[i] == '+')) down = text[i++] == '-';
    int exponent = 0;
    const size_t from = i;
    for (; i < text.size() && is_digit(text[i]); ++i) {
      if (exponent < 10000) exponent = exponent * 10 + (text[i] - '0');
    }
    if (i == from) return std::nullopt;
    digits->scale += down ? -exponent : exponent;
  }
  if (i != text.size()) return std::nullopt;
  uint64_t value = digits->value;
  int scale = digits->scale + shift;
  // A digit is dropped only where it makes the number too large.
  if (digits->dropped && scale > 0) return std::nullopt;
  bool round_up = scale == 0 && digits->dropped && digits->dropped_digit >= 5;
  for (; scale > 0 && value != 0; --scale) {
    if (value > kLargest / 10) return std::nullopt;
    value *= 10;
  }
  for (; scale < 0 && value != 0; ++scale) {
    round_up = scale == -1 && value % 10 >= 5;
    value /= 10;
  }
  if (round_up) {
    if (value == kLargest) return std::nullopt;
    ++value;
  }
  return negative ? -static_cast<int64_t>(value) : static_cast<int64_t>(value);
}

}  // namespace rehearse::traces::kineto
