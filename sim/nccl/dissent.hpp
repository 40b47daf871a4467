// SPDX-License-Identifier: Apache-2.0
// Ranks that would decide otherwise than the first rank of their communicator, because variables
// differ between them. NCCL does not compare: each rank moves what its own plan says, so a call that
// they plan differently never ends. Values only.
#pragma once

#include <string>
#include <vector>

#include "sim/nccl/call.hpp"
#include "sim/nccl/graphs.hpp"
#include "sim/nccl/model.hpp"
#include "sim/nccl/p2p.hpp"
#include "sim/nccl/pairs.hpp"

namespace rehearse::sim {

// Ranks with the same variables that decide, other than those of the first rank.
struct OtherDecider {
  std::vector<uint32_t> ranks;
  Graphs graphs;
  NcclModel model;
};

// Errors as of the rank that NCCL would refuse first; `where` names it.
[[nodiscard]] Result<std::vector<OtherDecider>> other_deciders(const ModelContext& context,
                                                               const Placement& placement,
                                                               const NcclVersion& version);

// What the first rank and another one plan for a collective, where the plans do not fit together:
// "RING/LL128 on 16 channels, but TREE/LL128 on 16 on ranks 3-5". Empty when they do.
[[nodiscard]] std::string dissent_in(const NcclModel& first, const OtherDecider& other,
                                     const Call& call);

// The same for a transfer of that many bytes between two members.
[[nodiscard]] std::string dissent_in(const PairContext& first, const OtherDecider& other,
                                     Bytes bytes, P2pRoute route);

}  // namespace rehearse::sim
