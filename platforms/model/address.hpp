// SPDX-License-Identifier: Apache-2.0
// Text with counters in it ("mlx5_{i}", "10.0.0.{i}/16") and the syntax of addresses and port
// ranges. Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace rehearse::platforms {

// Replaces "{x}" by the value, where x is `letter`; "{x/4}" by the quotient and "{x%4}" by the
// remainder, which may be chained. Anything else in braces stays as it is.
[[nodiscard]] std::string fill(std::string_view text, char letter, uint64_t value);

// Address number `index` (from 0) of a template: "{i}" is index + 1. In dotted addresses a value
// above 254 is carried into the octet to the left (10.0.0.{i} of 254 is 10.0.1.1). Empty when that
// leaves the address space or, where "{i}" is below the prefix length, the network.
[[nodiscard]] std::string nth_address(std::string_view text, uint64_t index);

struct Cidr {
  std::string address;  // without the prefix
  int bits = 32;        // 32 or 128
  int prefix = 32;      // equal to `bits` when none is written
};

// "10.0.0.1/16", "10.0.0.1", "fd00::1/64".
[[nodiscard]] std::optional<Cidr> parse_cidr(std::string_view text);

// "29500", "1024-65535"; empty is every port.
[[nodiscard]] bool is_port_range(std::string_view text);

}  // namespace rehearse::platforms
