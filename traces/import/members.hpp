// SPDX-License-Identifier: Apache-2.0
// Members of communicators that no file tells whole: each rank knows its own place in it, all ranks
// together know the rest. Places of ranks that are not here are assumed from the layout (consecutive ranks,
// or ranks at an even distance), with a finding.
#pragma once

#include <span>

#include "base/finding.hpp"
#include "traces/import/part.hpp"

namespace rehearse::traces {

// Ranks have their numbers; `world` is the size of the job. Fills members of communicators that have none
// and whose places are known; leaves the others for "all ranks".
void complete_members(std::span<RankPart* const> ranks, uint32_t world, Findings& findings);

// Makes buffers of messages (RankPart::message_only) by the number of members.
void size_buffers(RankPart& part, uint32_t world);

}  // namespace rehearse::traces
