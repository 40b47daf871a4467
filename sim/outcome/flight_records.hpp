// SPDX-License-Identifier: Apache-2.0
// What PyTorch's flight recorder of each rank would hold when the run was given up: the calls that the host had put
// on a stream, how far each had come, and per process group the last sequence numbers. A rank that never came to a
// call has no entry for it, which is how a reader of the dumps finds it. A rank that is no more leaves no dump.
#pragma once

#include "sim/outcome/outcome.hpp"

namespace rehearse::sim {

// `until`: what happened later had not happened yet. Of each rank the newest, as many as its
// environment keeps (TorchTimers::records).
void fill_flight_records(const Scenario& scenario, const Evidence& evidence, Nanos until,
                         pb::Outcome& out);

// The same for a start that hangs in its first collective: the call that each rank has put on its stream, and that
// runs without end. What hangs or fails earlier leaves nothing: PyTorch records a call once its communicator exists.
void fill_first_calls(const Scenario& scenario, pb::Outcome& out);

// Would PyTorch write them? A watchdog ran out, and not all ranks are kept from it by TORCH_NCCL_DUMP_ON_TIMEOUT=0
// or a buffer of size 0.
[[nodiscard]] bool dumps_records(const pb::Launch& launch, const pb::Outcome& outcome);

// Finding "nccl-ras": what NCCL's health service (`ncclras`, since 2.24, NCCL_RAS_ENABLE) says of a run that hangs,
// from the same counters: communicators whose ranks have launched different numbers of operations. Without it nothing.
void add_health_report(const Scenario& scenario, const Evidence& evidence, pb::Outcome& out);

}  // namespace rehearse::sim
