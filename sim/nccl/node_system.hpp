// SPDX-License-Identifier: Apache-2.0
// One node (or one NVLink domain of several hosts) as NCCL sees it: devices, wires with NCCL's own
// speeds, and the path between any two devices that matter (NCCL model §7.1, §7.2). Only GPUs of the
// communicator are in it. Speeds here are what NCCL counts with, not what links carry.
//
// Values only; the graph search (sim/nccl/search.hpp) works on a copy of the wires.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "platforms/model/links.hpp"
#include "sim/nccl/names.hpp"
#include "sim/nccl/topology_settings.hpp"

namespace rehearse::sim {

enum class DeviceType : uint8_t { kGpu, kPci, kNvSwitch, kCpu, kNic, kNet };
enum class WireType : uint8_t { kNvlink, kC2c, kPci, kSystem, kNetwork };

using DeviceId = uint32_t;
constexpr DeviceId kNoDevice = UINT32_MAX;

struct Wire {
  DeviceId from = 0, to = 0;
  WireType type = WireType::kPci;
  float bandwidth = 0;  // GB/s
};

struct Path {
  std::vector<uint32_t> wires;  // indices into NodeSystem::wires, in order
  float bandwidth = 0;
  PathType type = PathType::kDis;
  // PXN: the GPU whose NIC is used; NVB: the GPU in between. An index into gpus.
  uint32_t via = UINT32_MAX;
};

struct SystemDevice {
  DeviceType type = DeviceType::kGpu;
  uint32_t host = 0;   // position in NodeSystem::hosts
  uint32_t index = 0;  // GPU, NIC or interface of that node; NUMA domain of a processor
  int compute_capability = 0;
  CpuArch arch = CpuArch::kX86;
  CpuVendor vendor = CpuVendor::kIntel;
  std::vector<uint32_t> wires;  // that leave it, fastest first, the one up the PCIe tree last
};

struct SystemNet {
  DeviceId device = 0;
  uint32_t host = 0;                // position in NodeSystem::hosts
  uint32_t index = 0;               // NIC of the host, or its interface for sockets
  float bandwidth = 0;              // GB/s
  uint32_t adapter = 0;             // ports of one adapter share it
  std::vector<uint32_t> ports;      // NICs that are one device; `index` is the first
  bool direct = false;              // GPUDirect RDMA works on it
  bool collnet = false;             // the fabric above it reduces
  uint32_t local_gpu = UINT32_MAX;  // the GPU that it serves first
};

// What is to be looked at: the GPUs in order, and the network devices.
struct SystemScope {
  std::vector<platforms::GpuRef> gpus;  // of the communicator, ascending
  struct Net {
    uint32_t host = 0;  // node of the platform
    uint32_t index = 0;
  };
  std::vector<Net> nets;
  bool sockets = false;  // nets are IP interfaces
};

// A node of the platform as NCCL takes it.
using NodeOf = std::function<const pb::Node&(uint32_t)>;

class NodeSystem {
 public:
  // `platform` is expanded and its GPUs and NICs exist.
  NodeSystem(const pb::Platform& platform, const SystemScope& scope,
             const TopologySettings& settings);
  // The same with nodes as files tell them (NCCL_TOPO_FILE).
  NodeSystem(const pb::Platform& platform, const NodeOf& nodes, const SystemScope& scope,
             const TopologySettings& settings);

  std::vector<SystemDevice> devices;
  std::vector<Wire> wires;
  std::vector<DeviceId> gpus;   // in the order of the scope
  std::vector<SystemNet> nets;  // in the order of the scope
  std::vector<DeviceId> cpus;
  DeviceId nvswitch = kNoDevice;
  bool split_nvlink = false;    // two NVLink islands
  std::vector<uint32_t> hosts;  // nodes of the platform, ascending

  [[nodiscard]] const Path& path(DeviceId from, DeviceId to) const {
    return paths_[static_cast<size_t>(from) * devices.size() + to];
  }
  [[nodiscard]] const Path& gpu_path(size_t a, size_t b) const { return path(gpus[a], gpus[b]); }
  [[nodiscard]] const Path& to_net(size_t gpu, size_t net) const {
    return path(gpus[gpu], nets[net].device);
  }
  [[nodiscard]] const Path& from_net(size_t net, size_t gpu) const {
    return path(nets[net].device, gpus[gpu]);
  }
  // Peer to peer between two GPUs (index) works and is near enough (§8).
  [[nodiscard]] bool peer_to_peer(size_t a, size_t b) const;
  // The same as the search believes it: before 2.13 it does not ask the driver.
  [[nodiscard]] bool taken_for_peers(size_t a, size_t b) const;
  // GPUDirect RDMA between GPU and NIC (§8); a PXN path counts with the GPU in between.
  [[nodiscard]] bool gpu_direct(size_t gpu, size_t net) const;
  // The same for what the GPU sends (NCCL_NET_GDR_READ): off by default before Ampere where PCIe
  // carries other traffic of the node too.
  [[nodiscard]] bool gpu_direct_send(size_t gpu, size_t net) const;
  // Both GPUs reach network devices below the root complex faster than each other.
  [[nodiscard]] bool network_faster(size_t a, size_t b) const;
  // The network device of a GPU for a channel (§7.2); UINT32_MAX when it has none.
  [[nodiscard]] uint32_t local_net(size_t gpu, uint32_t channel) const {
    const LocalNets& of = local_nets_[gpu];
    if (of.near.empty()) return UINT32_MAX;
    return of.near[(of.first + channel % of.spread) % of.near.size()];
  }
  // Indices of `of` (GPUs or nets) that are nearest by bandwidth, then by type.
  [[nodiscard]] std::vector<uint32_t> nearest_nets(size_t gpu) const;
  [[nodiscard]] std::vector<uint32_t> nearest_gpus(size_t net) const;

  // The lowest and highest compute capability.
  [[nodiscard]] int lowest_capability() const;
  // Fastest path GPU to GPU, or GPU to network where there is one; largest sum of NVLink or PCIe of
  // a GPU.
  float max_bandwidth = 0;
  float total_bandwidth = 0;

 private:
  [[nodiscard]] bool near_enough(size_t a, size_t b) const;
  friend class SystemBuilder;
  friend class PathFinder;
  Path& at(DeviceId from, DeviceId to) {
    return paths_[static_cast<size_t>(from) * devices.size() + to];
  }
  void finish();
  void choose_local_nets();

  // The nearest network devices of a GPU, the first it takes and over how many it spreads channels.
  struct LocalNets {
    std::vector<uint32_t> near;
    uint32_t first = 0;
    uint32_t spread = 1;
  };

  TopologySettings settings_;
  std::vector<Path> paths_;
  std::vector<bool> refused_peer_;   // per GPU: the driver refuses peer access over PCIe
  std::vector<Path> direct_paths_;   // GPU to GPU before what cannot be used was rerouted
  std::vector<Path> direct_to_net_;  // GPU to net likewise
  std::vector<LocalNets> local_nets_;
};

}  // namespace rehearse::sim
