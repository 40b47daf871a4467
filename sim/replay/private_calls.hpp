// SPDX-License-Identifier: Apache-2.0
// Calls whose end is known as soon as their last member has come, because nothing else is on their links meanwhile.
// Tensor-parallel groups inside a node make most of the calls of large jobs, and are like that. They need no clock: their
// members run ahead of everybody else.
//
// A communicator's calls are such when every rank makes them one after the other, nobody leaves them before all have
// come, and all others on their links are communicators that have all its members too and whose calls nobody leaves
// before all have come (`sharers`: the gradient norm over a tensor- and pipeline-parallel group, say). A call of those
// moves data only while every one of our members is in it. So one of ours is alone on its links if none of its members is in
// such a call when the last of them comes, and some member leaves ours without having entered one.
#pragma once

#include <vector>

#include "sim/replay/link_users.hpp"
#include "sim/replay/shapes.hpp"

namespace rehearse::sim {

// Fills `alone` of the shapes of such calls; returns the sharers of each communicator. For runs in which nothing
// changes links or ranks and whose calls are fluid flows.
[[nodiscard]] std::vector<std::vector<uint32_t>> find_private_calls(
    const traces::Program& program, const LinkUsers& users, const Fabric& fabric,
    const Replayed& replayed, std::vector<DeclaredShape>& shapes);

}  // namespace rehearse::sim
