// SPDX-License-Identifier: Apache-2.0
// HOROVOD_NUM_NCCL_STREAMS: Horovod hands its responses to so many streams in turn, each with a communicator of its own,
// so that collectives that follow each other overlap (horovod/common/operations.cc, current_nccl_stream). The nth
// collective of a communicator goes to stream n modulo their number, on all ranks that have the variable alike; ranks that
// have it differently come to different communicators and wait for ever. Copies into the fusion buffer and out go along;
// what else was recorded between two collectives of a stream keeps its place before or after them.
#pragma once

#include <vector>

#include "base/error.hpp"
#include "sim/scenario/scenario.hpp"
#include "traces/program/program.hpp"

namespace rehearse::sim {

// Edits the ranks that ask for several. `grew` (sim/scenario/grow.hpp) follows the communicators.
[[nodiscard]] Result<void> on_several_streams(const Scenario& scenario, traces::Program& program,
                                              std::vector<bool>& grew);

}  // namespace rehearse::sim
