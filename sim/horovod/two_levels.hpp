// SPDX-License-Identifier: Apache-2.0
// Collectives of Horovod in two levels. Where every node has as many members, one call becomes several, on
// communicators of their own:
//
//   HOROVOD_HIERARCHICAL_ALLREDUCE  reduce-scatter inside the node by NCCL, all-reduce of a part by MPI through host
//                                   memory with the members of the same place on other nodes, all-gather inside the
//                                   node (NCCLHierarchicalAllreduce, horovod/common/ops/nccl_operations.cc). It needs
//                                   MPI, and comes before the next one where both are set
//   HOROVOD_TORUS_ALLREDUCE         the same with NCCL on both levels (NCCLTorusAllreduce)
//   HOROVOD_HIERARCHICAL_ALLGATHER  by MPI: gathered in shared memory, all-gather of the first members of nodes, copied
//                                   out (MPIHierarchicalAllgather, mpi_operations.cc). Gathers by NCCL or Gloo have none
//
// Ignored on one node, as Horovod does. A rank that has a variable which others do not have comes to calls where nobody
// waits for it. Blind spots: nodes with other numbers of members stay at one level (a finding); the part that does not
// divide evenly is rounded up.
#pragma once

#include <vector>

#include "base/error.hpp"
#include "sim/scenario/scenario.hpp"
#include "traces/program/program.hpp"

namespace rehearse::sim {

// Description of the communicators that it makes: their calls are parts of one that has been negotiated.
constexpr const char* kLevelOfHorovod = "a level of Horovod's collectives";

// Edits the calls of ranks that have one of the variables. `grew` (sim/scenario/grow.hpp) follows the communicators.
// Finding of the program: "horovod-setting" where a variable is set that has no effect.
[[nodiscard]] Result<void> in_two_levels(const Scenario& scenario, traces::Program& program,
                                         std::vector<bool>& grew);

}  // namespace rehearse::sim
