// SPDX-License-Identifier: Apache-2.0
// A platform as people see it: a tree of text for terminals and a drawing for reports. Nodes that
// differ only in name, addresses and NVLink domain are shown once with their number. Pure functions
// of an expanded platform.
#pragma once

#include <string>
#include <vector>

#include "platforms/proto/platform.pb.h"

namespace rehearse::platforms {

// Indices of nodes that look alike, in order of their first; each group in ascending order.
[[nodiscard]] std::vector<std::vector<uint32_t>> alike_nodes(const pb::Platform& expanded);

// Lines of UTF-8, each ended by a newline.
[[nodiscard]] std::string draw_text(const pb::Platform& expanded);

// One SVG element that needs nothing else; follows the reader's light or dark setting.
[[nodiscard]] std::string draw_svg(const pb::Platform& expanded);

// What joins the nodes, in one line: "rail-optimised, 32 nodes per leaf, 16 spines".
[[nodiscard]] std::string describe_fabric(const pb::Fabric& fabric);

// "4 NVSwitches, 18 links and 450 GB/s per GPU, in-switch reduction"; of a node that has GPUs.
[[nodiscard]] std::string describe_nvswitch(const pb::Node& node);

// "NVIDIA H100 80GB HBM3, 80.0 GiB", "InfiniBand 50.0 GB/s, rail 0, GPUDirect", "PCIe 5 x16, 63.0
// GB/s".
[[nodiscard]] std::string describe(const pb::Gpu& gpu);
[[nodiscard]] std::string describe(const pb::Nic& nic);
[[nodiscard]] std::string describe(const pb::PcieLink& link);
[[nodiscard]] std::string describe(const pb::NumaDomain& numa);

}  // namespace rehearse::platforms
