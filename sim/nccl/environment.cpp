// SPDX-License-Identifier: Apache-2.0
#include "sim/nccl/environment.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <limits>

#include "base/text.hpp"

namespace rehearse::sim {

namespace {

constexpr int64_t kAnyPort = -1;

// One entry of a list: a name, and the port behind its colon ("mlx5_0:1:rail"), 0 when that is no number.
struct FilterEntry {
  std::string_view name;
  int64_t port = kAnyPort;
};

FilterEntry entry_of(std::string_view text) {
  const size_t colon = text.find(':');
  if (colon == text.npos) return {text};
  std::string_view digits = text.substr(colon + 1);
  const size_t end = digits.find_first_not_of("0123456789");
  if (end != digits.npos) digits = digits.substr(0, end);
  int64_t port = 0;
  for (const char c : digits.substr(0, 6)) port = port * 10 + (c - '0');
  return {text.substr(0, colon), port};
}

bool passes(std::string_view name, std::string_view filter, int64_t port) {
  if (filter.empty()) return true;
  const bool exclude = filter.front() == '^';
  if (exclude) filter.remove_prefix(1);
  const bool exact = !filter.empty() && filter.front() == '=';
  if (exact) filter.remove_prefix(1);
  bool listed = false, found = false;
  for (const std::string& part : split(filter, ',')) {
    const FilterEntry entry = entry_of(part);
    if (entry.name.empty()) continue;
    listed = true;
    const bool fits = exact ? name == entry.name : name.starts_with(entry.name);
    found |= fits && (port == kAnyPort || entry.port == kAnyPort || entry.port == port);
  }
  return (found || !listed) != exclude;
}

}  // namespace

bool name_allowed(std::string_view name, std::string_view filter) {
  return passes(name, filter, kAnyPort);
}

bool hca_allowed(std::string_view name, std::string_view filter) { return passes(name, filter, 1); }

std::optional<ReadNumber> read_number(std::string_view text) {
  if (text.empty()) return std::nullopt;
  const std::string copy(text);
  char* end = nullptr;
  errno = 0;
  const int64_t value = std::strtoll(copy.c_str(), &end, 0);
  if (errno != 0) return std::nullopt;
  return ReadNumber{value, end != copy.c_str() && end == copy.c_str() + copy.size()};
}

std::string number_note(std::string_view name, std::string_view text) {
  if (text.empty()) return "";
  const auto read = read_number(text);
  if (!read) return fmt::format("{}={} is out of range; NCCL keeps its default", name, text);
  if (read->whole) return "";
  return fmt::format("{}={} is not a whole number; NCCL reads {}", name, text, read->value);
}

int whole_number(const std::map<std::string, std::string>& env, const char* name, int otherwise) {
  const auto read = read_number(variable_in(env, name));
  constexpr int64_t kMost = std::numeric_limits<int>::max();
  if (!read || read->value > kMost || read->value < -kMost) return otherwise;
  return static_cast<int>(read->value);
}

std::string variable_in(const std::map<std::string, std::string>& env, const std::string& name) {
  const auto at = env.find(name);
  return at == env.end() ? "" : at->second;
}

}  // namespace rehearse::sim
