// SPDX-License-Identifier: Apache-2.0
// What TORCH_NCCL_DESYNC_DEBUG adds to a watchdog's message: how far every rank of the process group was, which names the
// ones that did not join or came with something else (torch/csrc/distributed/c10d/TraceUtils.h, retrieveDesyncReport). It
// changes no time: the mismatch is told when the watchdog runs out. TORCH_DISTRIBUTED_DEBUG=DETAIL, which compares before
// every call, ends the job at once (disagreement.cpp).
#pragma once

#include <string>

#include "sim/outcome/outcome.hpp"

namespace rehearse::sim {

// `rank` is a position in Program::ranks, `late` the call that it gives up at `when`.
[[nodiscard]] std::string desync_report(const Evidence& evidence, uint32_t rank,
                                        const traces::Call& late, Nanos when);

}  // namespace rehearse::sim
