// SPDX-License-Identifier: Apache-2.0
#include "sim/bringup/ip.hpp"

#include <arpa/inet.h>

#include <algorithm>

#include "platforms/model/address.hpp"

namespace rehearse::sim::bringup {

std::optional<Ip> parse_ip(std::string_view text) {
  const std::string copy(text);
  Ip ip;
  if (inet_pton(AF_INET, copy.c_str(), ip.bytes.data()) == 1) return ip;
  ip.v6 = true;
  if (inet_pton(AF_INET6, copy.c_str(), ip.bytes.data()) == 1) return ip;
  return std::nullopt;
}

bool IpNetwork::contains(const Ip& other) const {
  if (ip.v6 != other.v6) return false;
  const int whole = prefix / 8, rest = prefix % 8;
  if (!std::equal(ip.bytes.begin(), ip.bytes.begin() + whole, other.bytes.begin())) return false;
  if (rest == 0) return true;
  const auto at = static_cast<size_t>(whole);
  return ((ip.bytes[at] ^ other.bytes[at]) >> (8 - rest)) == 0;
}

std::optional<IpNetwork> parse_network(std::string_view text) {
  const auto cidr = platforms::parse_cidr(text);
  if (!cidr) return std::nullopt;
  const auto ip = parse_ip(cidr->address);
  if (!ip) return std::nullopt;
  return IpNetwork{*ip, cidr->prefix};
}

bool is_loopback(const Ip& ip) {
  if (!ip.v6) return ip.bytes[0] == 127;
  return ip == *parse_ip("::1");
}

bool is_link_local(const Ip& ip) {
  if (!ip.v6) return ip.bytes[0] == 169 && ip.bytes[1] == 254;
  return ip.bytes[0] == 0xfe && (ip.bytes[1] & 0xc0) == 0x80;
}

std::string to_string(const Ip& ip) {
  char text[INET6_ADDRSTRLEN] = {};
  inet_ntop(ip.v6 ? AF_INET6 : AF_INET, ip.bytes.data(), text, sizeof text);
  return text;
}

}  // namespace rehearse::sim::bringup
