// SPDX-License-Identifier: Apache-2.0
// Open MPI's collectives as its "tuned" module decides them by size (ompi/mca/coll/tuned,
// coll_tuned_decision_fixed.c, in its main lines): recursive doubling for small, the ring for large
// all-reduces; binomial trees for small, a pipeline for large broadcasts. Between nodes it uses RDMA
// where there is an adapter that is up and OMPI_MCA_btl and OMPI_MCA_pml do not exclude it, else TCP
// over the interface of OMPI_MCA_btl_tcp_if_include; inside a node shared memory. Buffers of a GPU
// are staged through host memory.
#pragma once

#include "sim/host/host_collective.hpp"

namespace rehearse::sim {

[[nodiscard]] HostPlan mpi_plan(const traces::Call& call, uint32_t members);

// kBadInput when a node has no usable interface.
[[nodiscard]] Result<HostWires> mpi_wires(const ModelContext& context, const Placement& placement);

}  // namespace rehearse::sim
