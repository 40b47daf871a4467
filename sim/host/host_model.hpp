// SPDX-License-Identifier: Apache-2.0
// A communicator whose calls run on the hosts: Gloo or Open MPI.
#pragma once

#include <cstdint>
#include <optional>

#include "sim/host/host_collective.hpp"

namespace rehearse::sim {

enum class HostLibrary : uint8_t { kGloo, kMpi };

// The job's backend (Launch.backend) decides, under Horovod HOROVOD_CPU_OPERATIONS where data is on the hosts; where it is NCCL, the communicator's own name of its
// backend ("gloo", "cpu:gloo", "mpi"). Nothing: NCCL carries it.
[[nodiscard]] std::optional<HostLibrary> host_library(const pb::Launch& launch,
                                                      const traces::Communicator& communicator);

class HostModel {
 public:
  // kBadInput when ranks have no seat or a node no usable interface.
  [[nodiscard]] static Result<HostModel> create(const ModelContext& context, HostLibrary library,
                                                const traces::Communicator& communicator);

  [[nodiscard]] const Placement& placement() const { return placement_; }
  // "TCP", "RDMA"; inside one node "TCP" or "SHM".
  [[nodiscard]] const char* transport() const;
  // As CommunicatorModel::traffic.
  [[nodiscard]] Result<CallTraffic> traffic(const ModelContext& context, const traces::Call& call,
                                            uint32_t member) const;

 private:
  HostModel(HostLibrary library, Placement placement, HostWires wires)
      : library_(library), placement_(std::move(placement)), wires_(std::move(wires)) {}
  HostLibrary library_;
  Placement placement_;
  HostWires wires_;
};

}  // namespace rehearse::sim
