// SPDX-License-Identifier: Apache-2.0
// Training steps of a rank that recorded none, from the period of its communication: the same
// collectives on the same communicators with the same sizes come again every step.
#pragma once

#include <vector>

#include "traces/model/trace.hpp"

namespace rehearse::traces {

// At least two whole periods, else nothing. Steps are numbered from 0 and go from the start of a
// period's first collective to the start of the next period's.
[[nodiscard]] std::vector<Step> steps_from_calls(const Operations& ops);

}  // namespace rehearse::traces
