// SPDX-License-Identifier: Apache-2.0
#include "platforms/import/topology_words.hpp"

#include <bit>
#include <charconv>

namespace rehearse::platforms {

uint32_t generation_of(std::string_view speed) {
  double rate = 0;
  const auto [end, error] = std::from_chars(speed.data(), speed.data() + speed.size(), rate);
  if (error != std::errc()) return 0;
  static constexpr double kRates[] = {2.5, 5, 8, 16, 32, 64, 128};
  for (uint32_t i = 0; i < std::size(kRates); ++i) {
    if (rate == kRates[i]) return i + 1;
  }
  return 0;
}

uint32_t hexadecimal(const pugi::xml_node& element, const char* attribute) {
  std::string_view text = element.attribute(attribute).value();
  if (text.starts_with("0x")) text.remove_prefix(2);
  uint32_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value, 16);
  return value;
}

uint32_t threads_in(std::string_view affinity) {
  uint32_t bits = 0;
  for (const char c : affinity) {
    uint32_t digit = 0;
    if (std::from_chars(&c, &c + 1, digit, 16).ec == std::errc()) bits += std::popcount(digit);
  }
  return bits;
}

std::string vendor_word(std::string_view text) {
  if (text == "GenuineIntel") return "intel";
  if (text == "AuthenticAMD") return "amd";
  if (text.find("Shanghai") != std::string_view::npos || text == "CentaurHauls") return "zhaoxin";
  return {};
}

std::string arch_word(std::string_view text) {
  if (text.starts_with("x86")) return "x86";
  if (text.starts_with("arm") || text.starts_with("aarch")) return "arm";
  if (text.starts_with("ppc")) return "power";
  return {};
}

bool is_virtual(std::string_view name) {
  for (const std::string_view start :
       {"br-", "docker", "virbr", "veth", "cali", "tunl", "flannel", "cni", "vxlan", "lxc"}) {
    if (name.starts_with(start)) return true;
  }
  return false;
}

pb::NicKind nic_kind_of(const pugi::xml_node* pci, std::string_view name, bool rdma) {
  const uint32_t vendor = pci != nullptr ? hexadecimal(*pci, "vendor") : 0;
  if (vendor == 0x1d0f || name.starts_with("efa") || name.starts_with("rdmap")) return pb::EFA;
  if (vendor == 0x17db || name.starts_with("cxi")) return pb::SLINGSHOT;
  const std::string_view kind = pci != nullptr ? pci->attribute("class").value() : "";
  if (kind.starts_with("0x0207")) return pb::INFINIBAND;
  return rdma ? pb::ROCE : pb::ETHERNET;
}

double port_rate_of(uint32_t vendor, uint32_t device) {
  if (vendor == 0x1d0f) return 12.5e9;  // EFA: 100 Gbit/s per device
  if (vendor != 0x15b3) return 0;
  switch (device) {
    case 0x1017:
    case 0x1018:
      return 12.5e9;  // ConnectX-5
    case 0x101b:
    case 0x101c:
    case 0x101d:
    case 0x101e:
      return 25e9;  // ConnectX-6
    case 0x1021:
      return 50e9;  // ConnectX-7
    case 0x1023:
      return 100e9;  // ConnectX-8
    default:
      return 0;
  }
}

}  // namespace rehearse::platforms
