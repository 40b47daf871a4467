// SPDX-License-Identifier: Apache-2.0
// Fills the paths of a NodeSystem as NCCL does (NCCL model §7.2): breadth first from every device,
// fewer hops before more bandwidth; then pairs without peer access go through a processor, GPUs
// reach far NICs through a GPU beside them (PXN), and what cannot use GPUDirect goes through a
// processor. Private to sim/nccl.
#pragma once

#include "sim/nccl/node_system.hpp"

namespace rehearse::sim {

class PathFinder {
 public:
  PathFinder(NodeSystem& system, const TopologySettings& settings)
      : system_(system), settings_(settings) {}
  void run();

 private:
  void search_from(DeviceId base);
  void keep_direct();
  void serve();
  void without_peer_access();
  void through_neighbours();
  void without_gpu_direct(size_t gpu, size_t net);
  void by_way_of(DeviceId middle, DeviceId from, DeviceId to);
  [[nodiscard]] DeviceId processor_of(size_t gpu) const;
  [[nodiscard]] uint32_t served_gpu(size_t net) const;

  NodeSystem& system_;
  const TopologySettings& settings_;
};

}  // namespace rehearse::sim
