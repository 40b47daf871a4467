// SPDX-License-Identifier: Apache-2.0
// IP addresses as values: parsed once, compared by bytes. Pure functions.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace rehearse::sim::bringup {

struct Ip {
  bool v6 = false;
  std::array<uint8_t, 16> bytes{};  // the first four of IPv4
  bool operator==(const Ip&) const = default;
  bool operator<(const Ip& other) const { return v6 != other.v6 ? other.v6 : bytes < other.bytes; }
};

// "10.0.0.1", "fe80::1"; nothing for other text.
[[nodiscard]] std::optional<Ip> parse_ip(std::string_view text);

// An address of an interface with the length of its network's prefix.
struct IpNetwork {
  Ip ip;
  int prefix = 0;
  [[nodiscard]] bool contains(const Ip& other) const;
};
// "10.0.0.1/16"; without a prefix only the address itself is in it.
[[nodiscard]] std::optional<IpNetwork> parse_network(std::string_view text);

[[nodiscard]] bool is_loopback(const Ip& ip);
// fe80::/10 and 169.254.0.0/16: good on one wire only.
[[nodiscard]] bool is_link_local(const Ip& ip);
[[nodiscard]] std::string to_string(const Ip& ip);

}  // namespace rehearse::sim::bringup
