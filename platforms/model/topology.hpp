// SPDX-License-Identifier: Apache-2.0
// The tables behind Links: which link belongs to which device, and who hangs below whom. Private to
// platforms/model; links.cpp walks it, node_links.cpp and fabric_links.cpp fill it.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "platforms/model/links.hpp"

namespace rehearse::platforms {

constexpr uint32_t kNone = UINT32_MAX;

// A device or switch in the PCIe tree. `parent` is an index of NodeTopology::switches, kNone at the
// root.
struct Element {
  LinkId up = kNoLink;
  LinkId down = kNoLink;
  uint32_t parent = kNone;
  uint32_t numa = 0;  // of the root port above it
};

struct Duplex {
  LinkId out = kNoLink;
  LinkId in = kNoLink;
};

struct NumaTopology {
  LinkId host = kNoLink;
  Duplex socket;
};

struct InterfaceTopology {
  Duplex wire;           // of its own
  uint32_t nic = kNone;  // or of this NIC
};

struct NvlinkTo {
  uint32_t from, to;
  LinkId link;
};

struct NodeTopology {
  LinkId first = 0, last = 0;  // its links are [first, last)
  std::vector<NumaTopology> numa;
  std::vector<Element> switches;
  std::vector<Element> gpus;      // towards peers: PCIe, or C2C where there is no PCIe
  std::vector<Element> gpu_host;  // towards host memory: C2C where there is one, else PCIe
  std::vector<Element> nics;
  std::vector<Duplex> ports;
  std::vector<uint32_t> leaf;   // of each NIC
  std::vector<Duplex> nvlink;   // GPU to NVSwitch and back
  std::vector<NvlinkTo> pairs;  // by (from, to)
  std::vector<InterfaceTopology> interfaces;
  std::vector<Duplex> storage;  // out: write, in: read
  uint32_t lan = kNone;         // first LAN interface
  uint32_t domain = kNone;      // NVLink domain across nodes
  bool acs = false;
};

struct FabricTopology {
  pb::FabricKind kind = pb::NO_FABRIC;
  LinkId none = kNoLink;       // NO_FABRIC: between nodes; RAIL_ONLY: between leaves
  uint32_t spines = 1;         // links per leaf and direction: 1 when they are one bundle
  std::vector<Duplex> leaves;  // leaf * spines + spine
  // Adaptive: all uplinks of a leaf together, crossed by every flow; those that are hashed cross one
  // of `leaves` too.
  std::vector<Duplex> bundled;
  uint32_t leaves_per_group = 0;
  uint32_t groups = 0;
  LinkId bundles = kNoLink;  // dragonfly: groups - 1 links from each group, by the other
  std::vector<Duplex> pods;  // fat tree
};

struct Topology {
  std::vector<NodeTopology> nodes;
  std::unordered_map<std::string, uint32_t> node_names;
  FabricTopology fabric;
  std::vector<Duplex> shares;  // out: write, in: read
};

// What the builders add to.
struct Draft {
  std::vector<Link> links;
  Topology topology;
  LinkId add(Link link) {
    links.push_back(std::move(link));
    return static_cast<LinkId>(links.size() - 1);
  }
};

// Adds all links of node `index`. Errors name the place as "nodes[3].gpus[0]...".
[[nodiscard]] Result<void> add_node(const pb::Platform& platform, uint32_t index, Draft& draft);

// Changes what Fabric.links says of single links, by name. Errors name "fabric.links[i].name".
[[nodiscard]] Result<void> override_links(const pb::Platform& platform, const Links& index,
                                          const FabricTopology& fabric, std::vector<Link>& links);

// Adds switches above the NICs; nodes come first.
[[nodiscard]] Result<void> add_fabric(const pb::Platform& platform, Draft& draft);

}  // namespace rehearse::platforms
