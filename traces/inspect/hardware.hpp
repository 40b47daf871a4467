// SPDX-License-Identifier: Apache-2.0
// What a recorded run tells of the machine it ran on: kind and number of GPUs, nodes. The rest comes
// from the machine of the catalogue that fits best (platforms/import/seen.hpp). Pure functions.
#pragma once

#include <vector>

#include "platforms/import/seen.hpp"
#include "traces/model/trace.hpp"
#include "traces/proto/evidence.pb.h"

namespace rehearse::traces {

struct Hardware {
  platforms::Seen seen;  // of one node
  uint32_t nodes = 0;    // 0: not told
  uint32_t ranks = 0;    // of the job, recorded or not
};

// GPUs per node by the hosts of the recorded ranks; when only a part of the ranks is there, by the
// largest device number; at least as many as a process could see. Without host names the nodes are
// not told.
[[nodiscard]] Hardware hardware_of(const Trace& trace);

// The same from logs of NCCL and tables of nccl-tests: hosts and devices, the network that was used.
[[nodiscard]] Hardware hardware_of(const std::vector<pb::Evidence>& evidence);

// Nodes of `gpus` each that hold the job; at least the nodes told.
[[nodiscard]] uint32_t nodes_needed(const Hardware& hardware, uint32_t gpus);

}  // namespace rehearse::traces
