// SPDX-License-Identifier: Apache-2.0
// A recorded collective in NCCL's words. Pure function.
#pragma once

#include "sim/nccl/call.hpp"
#include "traces/model/trace.hpp"

namespace rehearse::sim {

// The collective as NCCL is asked for it; counts are per rank for all-gather and reduce-scatter. A
// barrier is an all-reduce of one element. Not for point-to-point calls and those made of them
// (all-to-all, gather, scatter).
[[nodiscard]] Call nccl_call(const traces::Call& call);

}  // namespace rehearse::sim
