// SPDX-License-Identifier: Apache-2.0
// The memory of each rank's GPU: what the framework allocated (recorded events, or those of the generator), NCCL's
// buffers, and the CUDA context.
//
//   allocated   sum of the trace's allocations minus frees, in recorded order
//   NCCL        buffers of its connections (fixed_memory.hpp)
//   Horovod     its fusion buffers (sim/horovod/fusion.hpp)
//   context     500 MiB, an assumption (300 to 600 MiB on data-centre GPUs)
//
// Blind spots: fragmentation and the caching allocator's rounding; what was allocated before a recording began.
#pragma once

#include <string>
#include <vector>

#include "sim/outcome/outcome.hpp"
#include "sim/proto/pictures.pb.h"

namespace rehearse::sim {

struct MemoryAccount {
  uint32_t rank = 0;  // position in Program::ranks
  Bytes capacity = 0;
  Bytes peak = 0;
  std::vector<std::pair<std::string, Bytes>> parts;  // of the peak, largest first
  uint32_t peak_step = 0;                            // 0: before the first step; s: in step s - 1
  double peak_part = 0;                              // how far into that step, 0 to 1
  // The first allocation that does not fit: its size and place; 0: all fit.
  Bytes refused = 0;
  Bytes in_use = 0;  // when it was refused
  Bytes leaked = 0;  // by leak-memory, over all steps
  Bytes fixed = 0;   // contexts and NCCL's buffers
  uint32_t refused_step = 0;
  double refused_part = 0;
};

// One per rank that recorded allocations; others are not known and counted in findings.
[[nodiscard]] std::vector<MemoryAccount> memory_accounts(const Scenario& scenario,
                                                         const Evidence& evidence,
                                                         Findings& findings);

// Memory in use over simulated time, of the ranks whose memory is fullest, at most `most` of them.
[[nodiscard]] std::vector<pb::MemoryCurve> memory_curves(const Scenario& scenario,
                                                         const Evidence& evidence, size_t most);

// How far the main thread of a rank has come: it is in `step` (-1: before the first; as many as there are: behind the
// last) and has ended `done` of the `operations` that it has there.
struct StepPlace {
  int step = -1;
  uint64_t done = 0;
  uint64_t operations = 0;
};
[[nodiscard]] StepPlace place_in_steps(const Evidence& past, size_t rank);

// What each rank of `memory_accounts` holds in a run as it was up to a moment: what was recorded up to the operation of
// its main thread that it is in; by share of the step's operations where patches changed their number.
struct MemoryNow {
  uint32_t rank = 0;  // position in Program::ranks
  Bytes in_use = 0;
  Bytes capacity = 0;
};
[[nodiscard]] std::vector<MemoryNow> memory_in_use(const Scenario& scenario, const Evidence& past);

// What the framework prints.
[[nodiscard]] std::string out_of_memory_text(const MemoryAccount& account, pb::Framework framework,
                                             uint32_t device);

}  // namespace rehearse::sim
