// SPDX-License-Identifier: Apache-2.0
// A small trace on a large cluster: `grow-data-parallel`. The job is repeated on further nodes, rank r of replica j
// being rank r + j * (ranks recorded). Communicators that span the data-parallel replicas grow over all of them; each
// other one exists once per replica. Replicas do the same at the same time, so only the recorded ranks are replayed:
//
//   a communicator that grew     has its traffic computed over all its members, those not replayed being on time
//   one that was replicated      has the traffic of all its copies in one flow, so that copies that meet on a link
//                                share it
//
// With the replicas' own speeds or links made unequal by patches this is no longer so: ranks of further replicas then
// behave like the recorded ones.
#pragma once

#include <vector>

#include "sim/nccl/traffic.hpp"
#include "sim/scenario/scenario.hpp"
#include "traces/program/program.hpp"

namespace rehearse::sim {

// More nodes and more ranks in the document; `scenario.replicas` counts.
[[nodiscard]] Result<void> grow(Scenario& scenario, const pb::GrowDataParallel& how);

// Lets the communicators of a program grow by `scenario.replicas`; returns for each whether it grew.
[[nodiscard]] Result<std::vector<bool>> grow_communicators(const Scenario& scenario,
                                                           traces::Program& program);

// The members of one copy of a communicator.
[[nodiscard]] traces::Communicator replica_of(const traces::Communicator& communicator,
                                              uint32_t replica, uint32_t ranks);

// Adds the traffic of a copy of a call: flows that are alike run together.
void add_traffic(CallTraffic& to, const CallTraffic& copy);

}  // namespace rehearse::sim
