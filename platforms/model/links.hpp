// SPDX-License-Identifier: Apache-2.0
// The links of an expanded platform: every piece of wire or bus whose bandwidth is shared, with its
// capacity per direction, and which of them a transfer between two places crosses. Everything that
// moves bytes in the simulation (NCCL, copies, storage) names links by LinkId.
//
//   inside a node   each device has a link up and a link down to the PCIe element above it. Each NUMA
//                   domain has a `host` link, its memory and root complex: crossed once by traffic
//                   between two of its root ports, once per store and once per load by traffic through
//                   host memory. Between domains: `socket-out` of one and `socket-in` of the other.
//   between nodes   tx of a port, the links of the switches above it, rx of a port. The way through a
//                   leaf and into a spine costs one hop latency each, which the link before the switch
//                   carries.
//   latency         is that of wires, adapters and switches; what starting a transfer inside a node
//                   costs is the transport's matter and is 0 here.
//
// Immutable once built; safe to share and cheap to copy.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/units.hpp"
#include "platforms/proto/platform.pb.h"

namespace rehearse::platforms {

using LinkId = uint32_t;
constexpr LinkId kNoLink = UINT32_MAX;

enum class LinkKind : uint8_t {
  kNvlink,     // GPU <-> NVSwitch, or GPU <-> GPU where there is no switch
  kPcie,       // device or switch <-> the PCIe element above
  kHost,       // through a CPU: root complex, shared memory, link between sockets
  kC2c,        // CPU <-> GPU coherent link
  kNic,        // port <-> its leaf switch
  kSwitch,     // leaf <-> spine and above
  kInterface,  // IP interface <-> its network
  kStorage,
};
// "nvlink", "pcie", ...: as documents and pages name it.
[[nodiscard]] const char* name_of(LinkKind kind);

struct Link {
  std::string name;  // "node0/gpu3/nvlink-out", "node1/mlx5_0/tx", "leaf0-spine1"
  LinkKind kind = LinkKind::kNvlink;
  BytesPerSec capacity = 0;  // data sheet, one direction
  Nanos latency = 0;
  uint32_t node = UINT32_MAX;
  bool down = false;
  // Part of the bytes on the wire that a port with small packets leaves for
  // data, of what one with 4096 bytes leaves.
  double payload = 1;
};

// A GPU of the platform.
struct GpuRef {
  uint32_t node = 0;
  uint32_t gpu = 0;
  bool operator==(const GpuRef&) const = default;
  // NOLINTNEXTLINE(modernize-use-nullptr): a comparison with 0
  auto operator<=>(const GpuRef&) const = default;
};

// Number of a flow whose packets adaptive switches spread over all equal paths.
constexpr uint64_t kSpreadFlow = UINT64_MAX;

struct Topology;  // how links hang together; platforms/model/topology.hpp

class Links {
 public:
  // Also after patches: what no longer fits together is an error that names the place. A GPU whose
  // `nvlink.links` is 0 has no NVLink; a NIC or interface that is `down` has links that are.
  [[nodiscard]] static Result<Links> build(const pb::Platform& expanded);

  [[nodiscard]] size_t size() const { return links_.size(); }
  [[nodiscard]] const Link& operator[](LinkId id) const { return links_[id]; }
  // kNoLink when there is none of that name.
  [[nodiscard]] LinkId find(std::string_view name) const;

  // Each appends the links crossed, in order, to `route`.
  // GPU to GPU over NVLink: inside a node, or between nodes of one NVLink domain. False when they
  // are not joined by NVLink directly or by a switch.
  bool nvlink(GpuRef from, GpuRef to, std::vector<LinkId>& route) const;
  // GPU to GPU inside a node over PCIe (peer to peer), up to their common PCIe element; with access
  // control services on, up to the root complex.
  void pcie(GpuRef from, GpuRef to, std::vector<LinkId>& route) const;
  // GPU to GPU inside a node through host memory.
  void host(GpuRef from, GpuRef to, std::vector<LinkId>& route) const;
  // GPU memory to a NIC of its node (out) and from a NIC to GPU memory (in); `direct` is GPUDirect
  // RDMA, else the data passes through host memory.
  void gpu_to_nic(GpuRef gpu, uint32_t nic, bool direct, std::vector<LinkId>& route) const;
  void nic_to_gpu(uint32_t nic, GpuRef gpu, bool direct, std::vector<LinkId>& route) const;
  // From the port of one NIC to the port of another through the fabric (tx, switches, rx). `flow`
  // picks one of several equal paths where the fabric hashes, else all are used evenly; kSpreadFlow
  // uses all evenly where switches can (Fabric.adaptive), else it is hashed like any other. Nodes
  // that no fabric joins are joined by the link "no-fabric", which is down; so is "no-spine" between
  // leaves that nothing joins.
  void network(uint32_t node_a, uint32_t nic_a, uint32_t node_b, uint32_t nic_b, uint64_t flow,
               std::vector<LinkId>& route) const;
  // From host memory of one node to another over IP interfaces (index into Node.interfaces). An
  // interface that rides on a NIC shares its links; bridges and loopback have none.
  void sockets(uint32_t node_a, uint32_t interface_a, uint32_t node_b, uint32_t interface_b,
               std::vector<LinkId>& route) const;
  // GPU memory to host memory of its node and back (sockets stage through it).
  void gpu_to_host(GpuRef gpu, std::vector<LinkId>& route) const;
  void host_to_gpu(GpuRef gpu, std::vector<LinkId>& route) const;

  // Host memory to storage and back: `disk` is an index into Node.storage, `share` one into
  // Platform.storage, which is reached over the first LAN interface of the node.
  void host_to_disk(uint32_t node, uint32_t disk, std::vector<LinkId>& route) const;
  void disk_to_host(uint32_t node, uint32_t disk, std::vector<LinkId>& route) const;
  void host_to_share(uint32_t node, uint32_t share, std::vector<LinkId>& route) const;
  void share_to_host(uint32_t node, uint32_t share, std::vector<LinkId>& route) const;

  // Number of PCIe elements between GPU and NIC, as NCCL classes it.
  enum class Distance : uint8_t { kPix, kPxb, kPhb, kSys };
  [[nodiscard]] Distance distance(GpuRef gpu, uint32_t nic) const;
  [[nodiscard]] Distance distance(GpuRef a, GpuRef b) const;

 private:
  std::vector<Link> links_;
  std::shared_ptr<const Topology> topology_;  // shared: copies of Links read the same tables
};

}  // namespace rehearse::platforms
