// SPDX-License-Identifier: Apache-2.0
#include "sim/bringup/mesh.hpp"

#include <fmt/format.h>

namespace rehearse::sim::bringup {

std::vector<BrokenPair> broken_pairs(const Job& job, const std::vector<size_t>& processes,
                                     const std::vector<std::optional<ChosenInterface>>& chosen) {
  constexpr size_t kAllPairs = 64;
  std::vector<BrokenPair> out;
  if (!job.network.described()) return out;
  std::vector<size_t> first;  // process of each node and address
  std::map<uint32_t, std::set<std::string>> addresses;
  for (const size_t p : processes) {
    if (chosen[p] && addresses[job.processes[p].node].insert(chosen[p]->address).second) {
      first.push_back(p);
    }
  }
  for (size_t a = 0; a < first.size(); ++a) {
    for (size_t b = 0; b < first.size(); ++b) {
      const bool neighbours = a + 1 == b || b + 1 == a || a == 0 || b == 0;
      if (a == b || (first.size() > kAllPairs && !neighbours)) continue;
      const size_t from = first[a], to = first[b];
      const uint32_t target = job.processes[to].node;
      const Arrival arrival = job.network.knock(job.processes[from].node, chosen[to]->address,
                                                ephemeral_port(job.node(target), to));
      if (arrival.answer == Answer::kArrives && arrival.node == target) continue;
      out.push_back({from, to, arrival, addresses[target].size() == 1});
    }
  }
  return out;
}

void blame_pair(Job& job, const BrokenPair& pair, const ChosenInterface& listening) {
  const bool stopped = pair.arrival.node != UINT32_MAX && pair.arrival.answer != Answer::kArrives;
  if (stopped) {
    return job.blame("node", pair.arrival.node, "its firewall stops connections between ranks");
  }
  const Process& process = job.processes[pair.to];
  job.blame(pair.whole_node ? "node" : "rank", pair.whole_node ? process.node : process.seat,
            fmt::format("{} on {} ({}), which {} does not reach",
                        pair.whole_node ? "its ranks listen" : "listens", listening.name,
                        listening.address, job.node(job.processes[pair.from].node).name()));
}

}  // namespace rehearse::sim::bringup
