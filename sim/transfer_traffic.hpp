// SPDX-License-Identifier: Apache-2.0
// Transfers of one rank as flows: copies between host and GPU memory or between two GPUs, and reads and writes of
// storage. They share PCIe, C2C, host memory, network and storage with everything else that is in flight.
//
//   copy     a recorded copy of B bytes that took D goes at most as fast as it did: its flow has the cap B / D. Alone,
//            or beside what it was recorded beside, it takes D; where others want the same links it takes longer.
//            Pageable memory is staged: the driver reads and writes host memory once more, so it counts there three
//            times. Where to a peer copy goes is not recorded; the next GPU of the node stands for it.
//   storage  the latency of the storage, then the bytes as fast as links and others allow.
//
// Blind spots: a copy never gets faster than it was recorded, also on a faster bus; copies of less than 64 KiB, and
// those inside a GPU, keep their recorded time.
#pragma once

#include <optional>

#include "sim/nccl/traffic.hpp"
#include "traces/program/program.hpp"

namespace rehearse::sim {

// nullopt: the transfer takes its recorded time. `duration` is that of its operation. kBadInput when it needs a
// storage that the rank cannot reach; without a name the platform's first share, else the first disk of its node.
[[nodiscard]] Result<std::optional<CallTraffic>> transfer_traffic(const ModelContext& context,
                                                                  const traces::Program& program,
                                                                  traces::RankId rank,
                                                                  const traces::Transfer& transfer,
                                                                  Nanos duration);

}  // namespace rehearse::sim
