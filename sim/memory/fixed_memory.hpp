// SPDX-License-Identifier: Apache-2.0
// What a GPU's memory holds before and beside what the job allocates: NCCL's buffers, the CUDA context of its rank,
// Horovod's fusion buffers, and contexts that other processes of the node opened on it.
//
// NCCL's buffers are those of the calls that were made, one of each protocol per channel and connection that a rank
// receives over (NCCL model §9.2); sizes are those of its environment. Blind spots: `connection_memory` (sim/nccl/buffers.hpp)
// knows which of them stand on the host; here all count as the GPU's.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sim/outcome/outcome.hpp"

namespace rehearse::sim {

struct FixedParts {
  Bytes nccl = 0, context = 0, foreign = 0, fusion = 0;
  [[nodiscard]] Bytes sum() const { return nccl + context + foreign + fusion; }
};

// Of one replayed run; both arguments outlive it.
class FixedMemory {
 public:
  FixedMemory(const Scenario& scenario, const Evidence& evidence);

  // Settings that NCCL refuses count as its defaults: such a job has made no call.
  [[nodiscard]] FixedParts of(const pb::RankLaunch& launch);

 private:
  [[nodiscard]] const std::vector<Bytes>& buffers_with(const pb::RankLaunch& launch);

  const Scenario& scenario_;
  const Evidence& evidence_;
  std::map<std::string, std::vector<Bytes>> buffers_;         // by settings: by communicator
  std::map<std::pair<uint32_t, uint32_t>, Bytes> opened_on_;  // by node and GPU
  std::vector<std::vector<uint32_t>> communicators_of_;       // by rank
  std::map<uint32_t, Bytes> fusion_;                          // by rank
};

}  // namespace rehearse::sim
