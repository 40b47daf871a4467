// SPDX-License-Identifier: Apache-2.0
// What the host does for a collective between nodes. What it predicts: how fast one channel can go when the thread that
// serves a GPU's network connections (NCCL's proxy) has to post every message. Each GPU has one such thread, whatever
// the number of channels:
//
//   rate of a channel <= bytes of a message / (messages of the busiest GPU per message of every channel x cost of one)
//
// Cost: NCCL reckons 1 us for a post, 2 us with AMD processors, and three of them for a step of the SIMPLE protocol, which
// is a receive and a send (src/graph/tuning.cc, getNetOverhead); a message is half a step. Rings send 1 MiB at a time
// and never feel it; trees with in-switch reduction that cut 64 KiB chunks do. Blind spots: send and recv (their
// chunks have a cost of their own, timing.hpp), PAT and CollNet; calls of few messages, which fill their pipeline at this
// rate too and come out slow (1 MiB over NVLS_TREE on 8 nodes: by a third). Validated by `rehearse validate --only pairs`.
#pragma once

#include "base/units.hpp"
#include "sim/nccl/choice.hpp"
#include "sim/nccl/graphs.hpp"

namespace rehearse::sim {

// Messages between nodes that the busiest GPU sends or receives while each of `channels` channels passes on one; 0: none.
[[nodiscard]] double messages_of_busiest(const Graphs& graphs, Algorithm algorithm, int channels);

// Payload rate of one channel that the busiest GPU's thread keeps up with, messages being `message_bytes`; 0: no limit.
[[nodiscard]] BytesPerSec posting_limit(const Graphs& graphs, const Choice& choice, int channels,
                                        int64_t message_bytes);

}  // namespace rehearse::sim
