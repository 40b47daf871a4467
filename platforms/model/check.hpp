// SPDX-License-Identifier: Apache-2.0
// What must hold of an expanded platform. Used by expansion; safe to call again after patches.
#pragma once

#include <string>

#include "base/error.hpp"
#include "platforms/proto/platform.pb.h"

namespace rehearse::platforms {

// The devices of one node: names, PCIe tree, NVLink pairs, NICs. `path` is where it stands
// ("cluster.yaml: nodes[3]").
[[nodiscard]] Result<void> check_devices(const pb::Node& node, const std::string& path);

// What differs between copies of a node, and the firewall: name and addresses.
[[nodiscard]] Result<void> check_addresses(const pb::Node& node, const std::string& path);

// What is between nodes: their names, and addresses that two of them claim.
[[nodiscard]] Result<void> check_between(const pb::Platform& platform, const std::string& where);

}  // namespace rehearse::platforms
