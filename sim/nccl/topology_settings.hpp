// SPDX-License-Identifier: Apache-2.0
// The variables by which a rank shapes what NCCL makes of a node (NCCL model §7, §8, §9.3). Values
// only.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "sim/nccl/names.hpp"
#include "sim/nccl/version.hpp"

namespace rehearse::sim {

struct TopologySettings {
  PathType p2p_level = PathType::kPxb;  // NCCL_P2P_LEVEL, NCCL_P2P_DISABLE
  bool p2p_level_given = false;
  PathType gdr_level = PathType::kPxb;  // NCCL_NET_GDR_LEVEL
  bool shared_memory = true;            // NCCL_SHM_DISABLE
  bool through_gpu = true;              // NCCL_NVB_DISABLE
  bool pxn = true;                      // NCCL_PXN_DISABLE
  bool pxn_c2c = true;                  // NCCL_PXN_C2C
  bool gdr_c2c = true;                  // NCCL_NET_GDR_C2C
  int cross_nic = 2;                    // NCCL_CROSS_NIC
  int p2p_pxn_level = 2;                // NCCL_P2P_PXN_LEVEL
  int nets_per_gpu = 0;                 // NCCL_NETDEVS_POLICY: 0 AUTO, -1 ALL, n MAX:n
  bool net_inside_node = true;          // NCCL_NET_DISABLE_INTRA is not 1
  int gdr_read = -1;                    // NCCL_NET_GDR_READ; -1: by the GPU
  bool dma_buffers = true;              // NCCL_DMABUF_ENABLE
  bool merge_ports = true;              // NCCL_IB_MERGE_NICS: ports of one adapter are one device
  int nvls = 2;                         // NCCL_NVLS_ENABLE
  bool collnet = false;                 // NCCL_COLLNET_ENABLE
  int collnet_nodes = 2;                // NCCL_COLLNET_NODE_THRESHOLD
  bool multi_node_nvlink = true;        // NCCL_MNNVL_ENABLE, NCCL_CUMEM_ENABLE
  uint32_t files = 0;                   // what NCCL_TOPO_FILE and NCCL_GRAPH_FILE say
                                        // (NodeGraphCache::know); 0: nothing
  NcclVersion version;

  bool operator==(const TopologySettings&) const = default;
};

// What two ranks of one node can do together.
[[nodiscard]] TopologySettings weaker(TopologySettings a, const TopologySettings& b);

// Reads them from a rank's environment, but for `files`. What NCCL would not understand keeps the
// default and gives a sentence in `notes`.
[[nodiscard]] TopologySettings topology_settings(
    const std::map<std::string, std::string>& environment, const NcclVersion& version,
    std::vector<std::string>& notes);

}  // namespace rehearse::sim
