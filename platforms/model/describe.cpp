// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <unordered_map>

#include "base/units.hpp"
#include "platforms/model/draw.hpp"
#include "platforms/model/pcie.hpp"

namespace rehearse::platforms {
namespace {

const char* word(pb::NicKind kind) {
  switch (kind) {
    case pb::INFINIBAND:
      return "InfiniBand";
    case pb::ROCE:
      return "RoCE";
    case pb::EFA:
      return "EFA";
    case pb::SLINGSHOT:
      return "Slingshot";
    case pb::ETHERNET:
      return "Ethernet";
    default:
      return "NIC";
  }
}

const char* word(pb::FabricKind kind) {
  switch (kind) {
    case pb::SINGLE_SWITCH:
      return "one switch";
    case pb::LEAF_SPINE:
      return "leaf-spine";
    case pb::RAIL_OPTIMISED:
      return "rail-optimised";
    case pb::RAIL_ONLY:
      return "rail-only";
    case pb::FAT_TREE:
      return "fat-tree";
    case pb::DRAGONFLY:
      return "dragonfly";
    default:
      return "none";
  }
}

// Everything about a node but what tells copies apart.
std::string signature(pb::Node node) {
  node.clear_name();
  node.mutable_nvswitch()->clear_domain();
  for (auto& each : *node.mutable_interfaces()) each.clear_addresses();
  for (auto& each : *node.mutable_hosts()) each.clear_address();
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream out(&bytes);
    google::protobuf::io::CodedOutputStream coded(&out);
    coded.SetSerializationDeterministic(true);
    node.SerializeToCodedStream(&coded);
  }
  return bytes;
}

}  // namespace

std::vector<std::vector<uint32_t>> alike_nodes(const pb::Platform& expanded) {
  std::vector<std::vector<uint32_t>> groups;
  std::unordered_map<std::string, size_t> known;
  for (int i = 0; i < expanded.nodes_size(); ++i) {
    const auto [group, fresh] = known.emplace(signature(expanded.nodes(i)), groups.size());
    if (fresh) groups.emplace_back();
    groups[group->second].push_back(static_cast<uint32_t>(i));
  }
  return groups;
}

std::string describe_fabric(const pb::Fabric& fabric) {
  std::string out = word(fabric.kind());
  bool leaves = fabric.kind() != pb::SINGLE_SWITCH && fabric.kind() != pb::NO_FABRIC;
  if (leaves && fabric.nodes_per_leaf()) {
    out += fmt::format(", {} nodes per leaf", fabric.nodes_per_leaf());
  }
  leaves = leaves && fabric.kind() != pb::RAIL_ONLY;  // the rest is about what is above them
  if (leaves && fabric.spines()) out += fmt::format(", {} spines", fabric.spines());
  if (leaves && fabric.leaves_per_group()) {
    out += fmt::format(", {} leaves per group", fabric.leaves_per_group());
  }
  if (leaves) {
    out += fabric.oversubscription() > 1
               ? fmt::format(", {}:1 oversubscribed", fabric.oversubscription())
               : ", non-blocking";
  }
  if (leaves && fabric.adaptive()) {
    out += ", adaptive routing";
  } else if (leaves && fabric.ecmp()) {
    out += ", flows hashed";
  }
  if (fabric.sharp()) out += ", in-switch reduction";
  if (fabric.hop_latency())
    out += fmt::format(", {} per switch", format_duration(fabric.hop_latency()));
  return out;
}

std::string describe(const pb::Gpu& gpu) {
  std::string out = gpu.model().empty() ? "GPU" : gpu.model();
  if (gpu.memory()) out += ", " + format_bytes(gpu.memory());
  if (gpu.speed() != 1) out += fmt::format(", speed {}", gpu.speed());
  return out;
}

std::string describe(const pb::Nic& nic) {
  std::string out = fmt::format("{} {}", word(nic.kind()), format_bandwidth(nic.bandwidth()));
  out += fmt::format(", rail {}", nic.rail());
  if (nic.gpudirect()) out += ", GPUDirect";
  if (!nic.interface().empty()) out += ", " + nic.interface();
  if (nic.down()) out += ", down";
  return out;
}

std::string describe(const pb::PcieLink& link) {
  const BytesPerSec bandwidth = bandwidth_of(link);
  if (bandwidth == 0) return "no PCIe";
  if (link.bandwidth() > 0) return "PCIe " + format_bandwidth(bandwidth);
  return fmt::format("PCIe {} x{}, {}", link.generation(), link.width() ? link.width() : 16,
                     format_bandwidth(bandwidth));
}

std::string describe_nvswitch(const pb::Node& node) {
  const auto& nvlink = node.gpus(0).nvlink();
  const auto& nvswitch = node.nvswitch();
  std::string out = fmt::format("{} NVSwitch{}, {} links and {} per GPU", nvswitch.count(),
                                nvswitch.count() == 1 ? "" : "es", nvlink.links(),
                                format_bandwidth(nvlink.links() * nvlink.bandwidth()));
  if (nvswitch.sharp()) out += ", in-switch reduction";
  if (!nvswitch.domain().empty()) out += ", domain " + nvswitch.domain();
  return out;
}

std::string describe(const pb::NumaDomain& numa) {
  std::string out = numa.cpu().empty() ? "CPU" : numa.cpu();
  if (numa.cores()) out += fmt::format(", {} cores", numa.cores());
  out += ", memory " + format_bandwidth(numa.memory_bandwidth());
  if (numa.interconnect() > 0) {
    out += fmt::format(", {} to other sockets", format_bandwidth(numa.interconnect()));
  }
  return out;
}

}  // namespace rehearse::platforms
