// SPDX-License-Identifier: Apache-2.0
// Connections between all nodes of a job, as Gloo and MPI make them.
#pragma once

#include <functional>

#include "sim/bringup/interfaces.hpp"
#include "sim/bringup/job.hpp"

namespace rehearse::sim::bringup {

// A connection that does not come about: the first process of each of two nodes.
struct BrokenPair {
  size_t from = 0, to = 0;
  Arrival arrival;
};

// Tries every ordered pair of nodes; in jobs of more than 64 nodes each with the first and with its neighbours,
// which finds every node that nobody reaches. `chosen` are the addresses at which processes listen.
[[nodiscard]] std::vector<BrokenPair> broken_pairs(
    const Job& job, const std::vector<size_t>& processes,
    const std::vector<std::optional<ChosenInterface>>& chosen);

// Whose fault a broken pair is, in words, is added to the job.
void blame_pair(Job& job, const BrokenPair& pair, const ChosenInterface& listening);

}  // namespace rehearse::sim::bringup
