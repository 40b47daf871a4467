// SPDX-License-Identifier: Apache-2.0
// What attributes of an NCCL topology file mean in the words of a platform. Pure functions; what they
// do not know is empty or 0. Private to platforms/import.
#pragma once

#include <cstdint>
#include <pugixml.hpp>
#include <string>
#include <string_view>

#include "platforms/proto/platform.pb.h"

namespace rehearse::platforms {

// PCIe generation as NCCL reads "16.0 GT/s PCIe" and "16 GT/s".
[[nodiscard]] uint32_t generation_of(std::string_view speed);

[[nodiscard]] uint32_t hexadecimal(const pugi::xml_node& element, const char* attribute);

// Bits of a processor's affinity mask.
[[nodiscard]] uint32_t threads_in(std::string_view affinity);

// "GenuineIntel" is "intel", "x86_64" is "x86".
[[nodiscard]] std::string vendor_word(std::string_view text);
[[nodiscard]] std::string arch_word(std::string_view text);

// Interfaces that exist inside one machine: bridges, tunnels, container ends.
[[nodiscard]] bool is_virtual(std::string_view name);

// By PCI ids of the device (null: none), by the name of the port and by whether it has verbs.
[[nodiscard]] pb::NicKind nic_kind_of(const pugi::xml_node* pci, std::string_view name, bool rdma);

// Rate of one port of adapters whose speed only the running machine knows (product briefs).
[[nodiscard]] double port_rate_of(uint32_t vendor, uint32_t device);

}  // namespace rehearse::platforms
