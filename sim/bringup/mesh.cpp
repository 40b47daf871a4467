// SPDX-License-Identifier: Apache-2.0
#include "sim/bringup/mesh.hpp"

#include <fmt/format.h>

namespace rehearse::sim::bringup {

std::vector<BrokenPair> broken_pairs(const Job& job, const std::vector<size_t>& processes,
                                     const std::vector<std::optional<ChosenInterface>>& chosen) {
  constexpr size_t kAllPairs = 64;
  std::vector<size_t> first;  // process of each node
  std::set<uint32_t> seen;
  for (const size_t p : processes) {
    if (seen.insert(job.processes[p].node).second) first.push_back(p);
  }
  std::vector<BrokenPair> out;
  if (!job.network.described()) return out;
  for (size_t a = 0; a < first.size(); ++a) {
    for (size_t b = 0; b < first.size(); ++b) {
      const bool neighbours = a + 1 == b || b + 1 == a || a == 0 || b == 0;
      if (a == b || (first.size() > kAllPairs && !neighbours)) continue;
      const size_t from = first[a], to = first[b];
      if (!chosen[from] || !chosen[to]) continue;
      const uint32_t target = job.processes[to].node;
      const Arrival arrival = job.network.knock(job.processes[from].node, chosen[to]->address,
                                                ephemeral_port(job.node(target), to));
      if (arrival.answer == Answer::kArrives && arrival.node == target) continue;
      out.push_back({from, to, arrival});
    }
  }
  return out;
}

void blame_pair(Job& job, const BrokenPair& pair, const ChosenInterface& listening) {
  const bool stopped = pair.arrival.node != UINT32_MAX && pair.arrival.answer != Answer::kArrives;
  if (stopped) {
    return job.blame("node", pair.arrival.node, "its firewall stops connections between ranks");
  }
  job.blame("node", job.processes[pair.to].node,
            fmt::format("its ranks listen on {} ({}), which {} does not reach", listening.name,
                        listening.address, job.node(job.processes[pair.from].node).name()));
}

}  // namespace rehearse::sim::bringup
