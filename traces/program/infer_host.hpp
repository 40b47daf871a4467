// SPDX-License-Identifier: Apache-2.0
// Host threads that waited for the GPU or for another thread although no call says so: traces without
// synchronising calls. A thread was blocked when nothing of it is recorded until shortly after
// (kWake) the streams ran dry; what it does next waits for the last operation of each stream.
#pragma once

#include "traces/program/draft.hpp"

namespace rehearse::traces {

// Adds inferred edges from streams to host calls. Nothing when the trace has synchronising calls.
void infer_host_waits(Draft& draft);

}  // namespace rehearse::traces
