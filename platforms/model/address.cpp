// SPDX-License-Identifier: Apache-2.0
#include "platforms/model/address.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/text.hpp"

namespace rehearse::platforms {
namespace {

std::optional<uint64_t> number(std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// The value of "/4%2" applied to `value`; nothing when it is not such an expression.
std::optional<uint64_t> evaluate(std::string_view steps, uint64_t value) {
  while (!steps.empty()) {
    const char op = steps.front();
    if (op != '/' && op != '%') return std::nullopt;
    steps.remove_prefix(1);
    const size_t end = std::min(steps.find_first_of("/%"), steps.size());
    const auto operand = number(steps.substr(0, end));
    if (!operand || *operand == 0) return std::nullopt;
    value = op == '/' ? value / *operand : value % *operand;
    steps.remove_prefix(end);
  }
  return value;
}

std::optional<uint32_t> ipv4(const std::string& text) {
  in_addr parsed{};
  if (inet_pton(AF_INET, text.c_str(), &parsed) != 1) return std::nullopt;
  return ntohl(parsed.s_addr);
}

}  // namespace

std::string fill(std::string_view text, char letter, uint64_t value) {
  std::string out;
  while (true) {
    const size_t open = text.find('{');
    const size_t close = open == text.npos ? text.npos : text.find('}', open);
    if (close == text.npos) return out.append(text);
    out.append(text.substr(0, open));
    const std::string_view inside = text.substr(open + 1, close - open - 1);
    const auto result =
        !inside.empty() && inside[0] == letter ? evaluate(inside.substr(1), value) : std::nullopt;
    if (result) {
      out += std::to_string(*result);
    } else {
      out.append(text.substr(open, close - open + 1));
    }
    text.remove_prefix(close + 1);
  }
}

std::string nth_address(std::string_view text, uint64_t index) {
  const size_t open = text.find("{i}");
  if (open == text.npos) return std::string(text);
  const std::string_view before = text.substr(0, open), after = text.substr(open + 3);
  if (text.find(':') != text.npos) return fmt::format("{}{:x}{}", before, index + 1, after);
  const std::string_view tail = after.substr(0, after.find('/'));
  const std::string_view suffix = after.substr(tail.size());
  const auto base = ipv4(fmt::format("{}0{}", before, tail));
  if (!base) return fmt::format("{}{}{}", before, index + 1, after);
  const int shift = 8 * static_cast<int>(std::count(tail.begin(), tail.end(), '.'));
  const uint64_t host = index / 254 * 256 + index % 254 + 1;
  const uint64_t address = *base + (host << shift);
  if (address > UINT32_MAX) return {};
  const auto prefix = suffix.empty() ? std::nullopt : number(suffix.substr(1));
  if (prefix && *prefix <= 32 && static_cast<int>(*prefix) <= 24 - shift) {
    const uint32_t mask = *prefix == 0 ? 0 : UINT32_MAX << (32 - *prefix);
    if ((address & mask) != (*base & mask)) return {};
  }
  return fmt::format("{}.{}.{}.{}{}", address >> 24, address >> 16 & 255, address >> 8 & 255,
                     address & 255, suffix);
}

std::optional<Cidr> parse_cidr(std::string_view text) {
  const size_t slash = text.find('/');
  Cidr cidr;
  cidr.address = text.substr(0, slash);
  in6_addr six{};
  if (ipv4(cidr.address)) {
    cidr.bits = 32;
  } else if (inet_pton(AF_INET6, cidr.address.c_str(), &six) == 1) {
    cidr.bits = 128;
  } else {
    return std::nullopt;
  }
  cidr.prefix = cidr.bits;
  if (slash != text.npos) {
    const auto prefix = number(text.substr(slash + 1));
    if (!prefix || *prefix > static_cast<uint64_t>(cidr.bits)) return std::nullopt;
    cidr.prefix = static_cast<int>(*prefix);
  }
  return cidr;
}

bool is_port_range(std::string_view text) {
  if (text.empty()) return true;
  const size_t dash = text.find('-');
  const auto first = number(text.substr(0, dash));
  const auto last = dash == text.npos ? first : number(text.substr(dash + 1));
  return first && last && *first <= *last && *last <= 65535;
}

}  // namespace rehearse::platforms
