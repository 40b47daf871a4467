// SPDX-License-Identifier: Apache-2.0
#include "traces/import/scan.hpp"

#include <charconv>
#include <cmath>

namespace rehearse::traces {
namespace {

constexpr std::string_view kBlanks = " \t\r";

}  // namespace

std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

void Scan::skip_blanks() {
  const size_t first = rest_.find_first_not_of(kBlanks);
  rest_.remove_prefix(first == std::string_view::npos ? rest_.size() : first);
}

bool Scan::at_end() {
  skip_blanks();
  return rest_.empty();
}

bool Scan::literal(std::string_view text) {
  const std::string_view before = rest_;
  skip_blanks();
  if (!rest_.starts_with(text)) {
    rest_ = before;
    return false;
  }
  rest_.remove_prefix(text.size());
  return true;
}

bool Scan::after(std::string_view text) {
  const size_t at = rest_.find(text);
  if (at == std::string_view::npos) return false;
  rest_.remove_prefix(at + text.size());
  return true;
}

template <typename T, typename... How>
static std::optional<T> take(std::string_view& rest, size_t skip, How... how) {
  T value{};
  const char* end = rest.data() + rest.size();
  const auto [stop, error] = std::from_chars(rest.data() + skip, end, value, how...);
  if (error != std::errc{}) return std::nullopt;
  rest.remove_prefix(static_cast<size_t>(stop - rest.data()));
  return value;
}

std::optional<int64_t> Scan::integer() {
  const std::string_view before = rest_;
  skip_blanks();
  auto value = take<int64_t>(rest_, 0, 10);
  if (!value) rest_ = before;
  return value;
}

std::optional<uint64_t> Scan::natural() {
  const std::string_view before = rest_;
  skip_blanks();
  auto value = take<uint64_t>(rest_, 0, 10);
  if (!value) rest_ = before;
  return value;
}

std::optional<uint64_t> Scan::hexadecimal() {
  const std::string_view before = rest_;
  skip_blanks();
  auto value = take<uint64_t>(rest_, rest_.starts_with("0x") ? 2 : 0, 16);
  if (!value) rest_ = before;
  return value;
}

std::optional<double> Scan::number() {
  const std::string_view before = rest_;
  skip_blanks();
  auto value = take<double>(rest_, 0);
  if (!value || !std::isfinite(*value)) {
    rest_ = before;
    return std::nullopt;
  }
  return value;
}

std::optional<std::string_view> Scan::word() {
  const std::string_view before = rest_;
  skip_blanks();
  if (rest_.empty()) {
    rest_ = before;
    return std::nullopt;
  }
  const std::string_view found = rest_.substr(0, rest_.find_first_of(kBlanks));
  rest_.remove_prefix(found.size());
  return found;
}

}  // namespace rehearse::traces
