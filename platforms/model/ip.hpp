// SPDX-License-Identifier: Apache-2.0
// What expansion does for IP: names, routes, and what must hold of addresses, rules and routes. Pure
// functions of a platform whose nodes are expanded.
#pragma once

#include <string>

#include "base/error.hpp"
#include "platforms/proto/platform.pb.h"

namespace rehearse::platforms {

// Every node's own name in the name service, unless written: its first LAN address, else its first
// IPoIB address.
void add_host_names(pb::Platform& platform);

// A default route per address family for nodes without routes that are in a network with a router.
void add_default_routes(pb::Platform& platform);

// Addresses, firewall rules, routes, hosts and ports of one node. `path` is where it stands
// ("cluster.yaml: nodes[3]").
[[nodiscard]] Result<void> check_ip(const pb::Node& node, const std::string& path);

// Routers: names once, gateways that are addresses, networks that exist.
[[nodiscard]] Result<void> check_networks(const pb::Platform& platform, const std::string& where);

}  // namespace rehearse::platforms
