// SPDX-License-Identifier: Apache-2.0
// The ranks and nodes that a patch names: fields of its transform with the option `naming`, and the nodes that its
// paths select. Pure functions.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "base/error.hpp"
#include "sim/proto/patch.pb.h"
#include "sim/proto/scenario.pb.h"

namespace rehearse::sim {

// The one rank that the transform is on; none: it is on several, or not on ranks.
[[nodiscard]] std::optional<uint32_t> rank_of(const pb::Patch& patch);
// Does the transform name the rank, alone or among others? One that is on every rank names none.
[[nodiscard]] bool names_rank(const pb::Patch& patch, uint32_t rank);
[[nodiscard]] bool names_node(const pb::Patch& patch, uint32_t node);

// Do both do the same to the same ranks and nodes, in whatever strength: the same transform, with the same fields given?
[[nodiscard]] bool alike(const pb::Patch& a, const pb::Patch& b);

// The patch without a rank that its transform names; none: it was on no other.
[[nodiscard]] std::optional<pb::Patch> without_rank(const pb::Patch& patch, uint32_t rank);

// The patch with the nodes of its paths written as indices, as `document` (expanded) has them; `*` stays. kBadInput when
// a path selects nothing there.
[[nodiscard]] Result<pb::Patch> with_node_indices(const pb::Patch& patch,
                                                  const pb::Scenario& document);

// New numbers by old ones; what is not there is gone.
struct Numbering {
  std::map<uint32_t, uint32_t> ranks, nodes;
  uint32_t nodes_before = 0;  // how many there were
};

// The patch (with_node_indices) with other numbers. Of several ranks or nodes those that are gone are left out. None:
// what it names alone is gone, or nothing is left that it would change.
[[nodiscard]] std::optional<pb::Patch> renumbered(const pb::Patch& patch,
                                                  const Numbering& numbering);

}  // namespace rehearse::sim
