// SPDX-License-Identifier: Apache-2.0
// A fix as its author would write it, for `fix --verify`.
#pragma once

#include <string>

#include "base/error.hpp"
#include "sim/proto/patch.pb.h"

namespace rehearse::faults {

// One of
//   NCCL_IB_HCA=mlx5_0              a variable of every rank; without a value it is unset
//   node 1: NCCL_IB_DISABLE=0       ... of the ranks of a node, or `rank 3: ...`
//   platform.nodes[0].acs=false     a path, as in --set
//   undo: slow-rank                 a patch, as in --patch
// kUsage for anything else.
[[nodiscard]] Result<pb::Patch> parse_own_fix(const std::string& text);

}  // namespace rehearse::faults
