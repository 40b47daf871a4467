// SPDX-License-Identifier: Apache-2.0
// How much a resident collective slows the kernels beside it. What it predicts: the rate of a
// rank's kernels from its arrival at a call until it leaves, relative to running alone.
//
//   rate = 1 - min(1/2, mean over the rank's calls of max(channels / SMs, memory share))
//
// Each NCCL channel is a thread block that holds a multiprocessor while it waits and while it
// copies; a kernel that fills the GPU loses that share. The memory share is what the call's bytes,
// three passes each, take of the memory's bandwidth at the speed of its slowest link; a kernel
// bound by memory loses that. A trace does not say what binds a kernel, so the larger one counts.
// A platform may state what kernels take beside a call over alone (efficiency.beside, which
// calibration measures where a trace tells it): every call then takes that share.
// One rate per rank: a kernel recorded beside a collective and replayed beside one takes its
// recorded time to the nanosecond; only a change of overlap changes it.
// Blind spots: kernels that do not fill the GPU lose less; caches; copies by copy engines, which
// are not slowed here.
#pragma once

#include <span>
#include <vector>

#include "sim/replay/shapes.hpp"

namespace rehearse::sim {

// What a call takes of the kernels beside it, between 0 and 1; 0 where the GPU is not known.
[[nodiscard]] double share_of_kernels(const CallTraffic& traffic,
                                      std::span<const BytesPerSec> capacity, const GpuShare& gpu);
// The rate of kernels beside calls that take `share` of them.
[[nodiscard]] double rate_beside(double share);

// 1: no contention.
[[nodiscard]] double rate_beside_calls(const traces::RankProgram& rank,
                                       std::span<const uint32_t> meeting_of,
                                       std::span<const uint32_t> shape_of,
                                       std::span<const DeclaredShape> shapes);

}  // namespace rehearse::sim
