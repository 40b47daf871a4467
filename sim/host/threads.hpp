// SPDX-License-Identifier: Apache-2.0
// OMP_NUM_THREADS: where the processes of a node have more threads than it has cores, the threads take turns, and the
// training loop of each process gets its share (F45). Only what the scenario tells: a launcher's own value (torchrun: 1) and
// threads that a library starts by itself are part of the recording.
//
//   share = hardware threads / threads of the node's processes; of the cores that a process is bound to
//           (RankLaunch.cpus) and its own threads, where that is less
//
// Priors: all threads are busy, as those of OpenMP are between two parallel regions, where they spin; a core of a NUMA
// domain has two hardware threads, on Arm one. A node that states no cores has enough.
#pragma once

#include <cstdint>
#include <map>

#include "base/error.hpp"
#include "sim/scenario/scenario.hpp"
#include "traces/program/program.hpp"

namespace rehearse::sim {

// How many times as long host work of a rank takes; ranks that have a core to themselves are left out.
[[nodiscard]] std::map<uint32_t, double> turns_on_cores(const pb::Scenario& document);
// Finding of the program: "cpu-oversubscribed".
[[nodiscard]] Result<void> share_cores(const pb::Scenario& document, traces::Program& program);

}  // namespace rehearse::sim
