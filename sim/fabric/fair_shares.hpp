// SPDX-License-Identifier: Apache-2.0
// Max-min fair rates of flows that share constraints, once and from scratch: for those who look at a run that
// stands still. All rates grow together until a constraint is full; its flows keep theirs, the rest go on. A pure
// function, O(constraints x rounds + uses).
#pragma once

#include <span>
#include <vector>

#include "sim/fabric/fabric.hpp"

namespace rehearse::sim {

// By flow: the constraints it uses (LinkWeight::link is an index into `capacities`) with their weights. A flow over a
// constraint of no capacity gets 0; one without constraints too.
[[nodiscard]] std::vector<BytesPerSec> fair_shares(
    const std::vector<BytesPerSec>& capacities,
    const std::vector<std::span<const LinkWeight>>& flows);

}  // namespace rehearse::sim
