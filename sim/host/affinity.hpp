// SPDX-License-Identifier: Apache-2.0
// The processor cores that a launcher gives a process (RankLaunch.cpus: mpirun binds to one core since Open MPI 3, as do
// numactl, taskset and Slurm) and what its threads do with them.
//
//   far from the GPU   none of its cores is in the GPU's NUMA domain: copies between host and device cross the link
//                      between processors and take four times as long (F46)
//   too few            a thread that shares the only core with the training loop gets it after a slice of the
//                      scheduler: each call that waits for the thread is 3 ms late (F45, F78)
//
// The threads: NCCL's proxy, which feeds every call between nodes. It runs on those of the process's cores that are near
// its GPU, or on all cores near it with NCCL_IGNORE_CPU_AFFINITY=1 (ncclTopoGetCpuAffinity, src/graph/topo.cc). Horovod's
// background thread, which negotiates every collective: on the core that HOROVOD_THREAD_AFFINITY has for its local rank,
// else anywhere on the process's cores (horovod/common/operations.cc).
//
// Cores count from 0 through the NUMA domains in order; hyperthreads are not told apart. A platform that states no cores
// says nothing of near and far. The 3 ms are Linux's base slice, the factor of copies is F46's: priors.
#pragma once

#include "base/error.hpp"
#include "sim/scenario/scenario.hpp"
#include "traces/program/program.hpp"

namespace rehearse::sim {

struct CoreTrouble {
  bool far = false;
  bool proxy_starved = false;
  bool horovod_starved = false;
};

// `local`: position of the rank among those of its node. kBadInput when cpus is no list of cores, or names one that the
// node does not have.
[[nodiscard]] Result<CoreTrouble> trouble_with_cores(const pb::Scenario& document,
                                                     const pb::RankLaunch& rank, uint32_t local);

[[nodiscard]] bool binds_processes(
    const pb::Launch& launch);  // false: bind_processes changes nothing
// Findings of the program: "few-cores", "far-cores".
[[nodiscard]] Result<void> bind_processes(const pb::Scenario& document, traces::Program& program);

}  // namespace rehearse::sim
