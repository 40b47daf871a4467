// SPDX-License-Identifier: Apache-2.0
#include "sim/replay/contention.hpp"

#include <algorithm>

namespace rehearse::sim {
namespace {

// Of each byte a GPU passes on in a collective: read what came in, read its own, write the result.
constexpr double kMemoryPasses = 3;

}  // namespace

double share_of_kernels(const CallTraffic& traffic, std::span<const BytesPerSec> capacity,
                        const GpuShare& gpu) {
  if (gpu.beside > 0) return std::max(0.0, 1 - 1 / gpu.beside);
  double seconds = 0;
  for (const FlowLoad& flow : traffic.flows) {
    for (const LinkWeight& use : flow.links) {
      seconds = std::max(seconds, flow.bytes * use.weight / capacity[use.link]);
    }
  }
  const double multiprocessors = gpu.sms > 0 ? static_cast<double>(traffic.channels) / gpu.sms : 0;
  const double memory = gpu.memory_bandwidth > 0 && seconds > 0
                            ? kMemoryPasses * traffic.bus_bytes / seconds / gpu.memory_bandwidth
                            : 0;
  return std::max(multiprocessors, memory);
}

double rate_beside(double share) {
  constexpr double kMost = 0.5;
  return 1 - std::min(kMost, share);
}

double rate_beside_calls(const traces::RankProgram& rank, std::span<const uint32_t> meeting_of,
                         std::span<const uint32_t> shape_of,
                         std::span<const DeclaredShape> shapes) {
  if (rank.calls.empty()) return 1;
  double sum = 0;
  for (uint32_t meeting : meeting_of) sum += shapes[shape_of[meeting]].share_of_kernels;
  return rate_beside(sum / static_cast<double>(meeting_of.size()));
}

}  // namespace rehearse::sim
