// SPDX-License-Identifier: Apache-2.0
#include "traces/inspect/hardware.hpp"

#include <algorithm>
#include <map>

namespace rehearse::traces {

Hardware hardware_of(const Trace& trace) {
  Hardware out;
  out.ranks =
      std::max<uint32_t>(trace.header.world_size(), static_cast<uint32_t>(trace.ranks.size()));
  std::map<std::string, uint32_t> on_host;
  uint32_t highest = 0;
  for (const RankTrace& rank : trace.ranks) {
    if (!rank.host.empty()) ++on_host[rank.host];
    highest = std::max(highest, rank.gpu + 1);
    if (out.seen.gpu_model.empty()) {
      out.seen.gpu_model = rank.gpu_model;
      out.seen.gpu_memory = rank.gpu_memory;
    }
  }
  uint32_t fullest = 0;
  for (const auto& [host, ranks] : on_host) fullest = std::max(fullest, ranks);
  const bool all = trace.ranks.size() == out.ranks;
  if (all && !on_host.empty()) {
    out.nodes = static_cast<uint32_t>(on_host.size());
    out.seen.gpus = std::max(fullest, highest);
  } else if (highest > 1 || fullest > 1) {
    out.seen.gpus = std::max(fullest, highest);
  }
  if (out.seen.gpus > out.ranks) out.seen.gpus = highest;
  return out;
}

uint32_t nodes_needed(const Hardware& hardware, uint32_t gpus) {
  const uint32_t by_ranks = gpus == 0 ? 1 : (hardware.ranks + gpus - 1) / gpus;
  return std::max({1u, hardware.nodes, by_ranks});
}

}  // namespace rehearse::traces
