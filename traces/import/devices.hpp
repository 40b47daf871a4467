// SPDX-License-Identifier: Apache-2.0
// One process that drives several GPUs (nn.DataParallel, MirroredStrategy, ncclCommInitAll) is one rank of
// the launcher and several ranks of NCCL. Such a process is taken apart here: one rank per GPU that
// communicates, since that is what collectives are among.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/finding.hpp"
#include "traces/import/part.hpp"

namespace rehearse::traces {

constexpr int64_t kNoDevice = -1;
// A process with more GPUs is not taken apart.
constexpr size_t kMostGpusOfProcess = 128;

struct ProcessDevices {
  std::vector<int64_t> of_lane;    // per lane: the GPU of a stream, kNoDevice of a host thread
  std::vector<int64_t> of_memory;  // per entry of ops.memory, kNoDevice: not told; may be empty
  // Members and peers of communicators number processes, as frameworks do, not GPUs, as NCCL does.
  bool ranks_are_processes = false;
};

// The GPU that a process has most work on, the first of several alike; kNoDevice without any. `work` counts
// operations per GPU.
[[nodiscard]] int64_t busiest_gpu(const std::map<int64_t, uint64_t>& work);
// Sets trace.gpu to that, and tells where there is none, or several of which fewer than two communicate.
void choose_gpu(RankTrace& trace, const std::map<int64_t, uint64_t>& work, size_t communicating,
                const std::string& where, Findings& findings);

// The GPUs on whose streams calls ran, ascending; none when there are more than a process can drive, or the
// job would have more ranks than any has.
[[nodiscard]] std::vector<int64_t> communicating_gpus(const RankPart& part,
                                                      const ProcessDevices& devices);

// `part`, sorted, as it is when fewer than two of its GPUs communicate. Else a part per such GPU in their
// order, with trace.gpu set: its streams, and all host threads that put work on it or on no GPU at all.
// Streams of GPUs that do not communicate go with the first. Where numbers of ranks are those of processes,
// process p becomes the ranks p * n to p * n + n - 1; the caller numbers the parts so (rank_of_gpu).
[[nodiscard]] std::vector<RankPart> ranks_of_process(RankPart part, const ProcessDevices& devices,
                                                     const std::string& where, Findings& findings);

// The rank of the i-th of `gpus` GPUs of a process; false when there is no such rank.
[[nodiscard]] bool rank_of_gpu(RankId process, size_t gpus, size_t i, RankId& rank);

}  // namespace rehearse::traces
