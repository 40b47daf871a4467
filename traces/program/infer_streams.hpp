// SPDX-License-Identifier: Apache-2.0
// Order between streams that a trace does not record (no cuda_sync records, no event ids: most
// public traces). Two sources:
//
//   what frameworks do   ProcessGroupNCCL, Horovod and TensorFlow let a collective wait for all that
//                        was enqueued on the compute stream at the call (the fork), and the compute
//                        stream for the collective where its result is used (the join)
//   what times show      an operation was held by another when it started within kReact of the
//                        other's end although its own stream and its launch were ready kStall before
//
// A fork that times contradict is not made. Where a join is not shown by times:
//   - if no call like it (same communicator, type and sizes) was ever passed by the next operation
//     launched, the framework waits at once;
//   - else the distance at which calls like it were joined, where all that show one agree;
//   - else all-gather: after the next call on its stream (parameters are fetched one unit ahead);
//     all-to-all, broadcast, receive: the first operation that started after it; all-reduce,
//     reduce-scatter, reduce, send: nothing of its own (gradients are joined with the last of them).
// With cudaStreamWaitEvent calls recorded without their events, joins are only made at these calls.
#pragma once

#include "traces/program/draft.hpp"

namespace rehearse::traces {

// Adds inferred edges to a draft whose launches are known. Nothing when the events were recorded.
void infer_stream_order(Draft& draft);

}  // namespace rehearse::traces
