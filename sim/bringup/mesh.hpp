// SPDX-License-Identifier: Apache-2.0
// Connections between all nodes of a job, as Gloo and MPI make them.
#pragma once

#include <functional>

#include "sim/bringup/interfaces.hpp"
#include "sim/bringup/job.hpp"

namespace rehearse::sim::bringup {

// A connection that does not come about, of the first process of each node that listens at one of its addresses.
struct BrokenPair {
  size_t from = 0, to = 0;
  Arrival arrival;
  bool whole_node = true;  // all of `to`'s node listen there
};

// Tries every ordered pair of nodes and of the addresses that processes listen at there; of more than 64 each with the
// first and with its neighbours, which finds all that nobody reaches. `chosen` are the addresses.
[[nodiscard]] std::vector<BrokenPair> broken_pairs(
    const Job& job, const std::vector<size_t>& processes,
    const std::vector<std::optional<ChosenInterface>>& chosen);

// Whose fault a broken pair is, in words, is added to the job.
void blame_pair(Job& job, const BrokenPair& pair, const ChosenInterface& listening);

}  // namespace rehearse::sim::bringup
