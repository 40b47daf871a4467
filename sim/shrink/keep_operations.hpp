// SPDX-License-Identifier: Apache-2.0
// Fewer operations in a rank of a job that was taken apart (job.hpp), with what waits for what kept whole. Pure.
#pragma once

#include <vector>

#include "sim/shrink/job.hpp"

namespace rehearse::sim {

// Leaves out the operations of a rank that are not marked. What waited for one of them, in its lane or by an edge, waits
// for what that waited for. O(operations x lanes + edges).
void keep_operations(JobRank& rank, const std::vector<bool>& keep);

}  // namespace rehearse::sim
