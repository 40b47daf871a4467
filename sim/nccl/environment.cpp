// SPDX-License-Identifier: Apache-2.0
#include "sim/nccl/environment.hpp"

#include <algorithm>
#include <charconv>

#include "base/text.hpp"

namespace rehearse::sim {

namespace {

enum class Ports : uint8_t { kIgnored, kFirst };

bool passes(std::string_view name, std::string_view filter, Ports ports) {
  if (filter.empty()) return true;
  const bool exclude = filter.front() == '^';
  if (exclude) filter.remove_prefix(1);
  const bool exact = !filter.empty() && filter.front() == '=';
  if (exact) filter.remove_prefix(1);
  for (const std::string& part : split(filter, ',')) {
    const size_t colon = std::min(part.find(':'), part.size());
    const std::string wanted = part.substr(0, colon);
    if (wanted.empty()) continue;
    const std::string rest = part.substr(std::min(colon + 1, part.size()));
    const std::string port = rest.substr(0, rest.find(':'));
    if (ports == Ports::kFirst && !port.empty() && port != "1") continue;
    const bool match = exact ? name == wanted : name.substr(0, wanted.size()) == wanted;
    if (match) return !exclude;
  }
  return exclude;
}

}  // namespace

bool name_allowed(std::string_view name, std::string_view filter) {
  return passes(name, filter, Ports::kIgnored);
}

bool hca_allowed(std::string_view name, std::string_view filter) {
  return passes(name, filter, Ports::kFirst);
}

int whole_number(const std::map<std::string, std::string>& env, const char* name, int otherwise) {
  const auto at = env.find(name);
  if (at == env.end()) return otherwise;
  int value = 0;
  const char* last = at->second.data() + at->second.size();
  const auto [end, error] = std::from_chars(at->second.data(), last, value);
  return error == std::errc() && end == last ? value : otherwise;
}

}  // namespace rehearse::sim
