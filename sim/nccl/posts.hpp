// SPDX-License-Identifier: Apache-2.0
// What the host does for a collective between nodes. What it predicts: how fast one channel can go when the thread that
// serves a GPU's network connections (NCCL's proxy) has to post every message. Each GPU has one such thread, whatever
// the number of channels:
//
//   rate of a channel <= bytes of a message / (messages of the busiest GPU per message of every channel x cost of one)
//
// Cost: NCCL reckons 1 us for a post, 2 us with AMD processors (src/graph/tuning.cc, getNetOverhead), and a message is half
// of a step, which is a receive and a send. Through a plugin that hands on to libfabric it reckons three of them for SIMPLE,
// and that is what eight p5 lose with chunks of 64 KiB (validation/figures/fault_pairs.yaml, FF18); by verbs one is enough:
// four nodes of B200 keep 351 GB/s with the same chunks, of which three would leave half (validation/figures/held_out, its
// report). Rings send 1 MiB at a time and never feel it; trees with in-switch reduction that cut 64 KiB chunks do. The first
// message of each connection costs nothing here: the latencies of hops (timing.hpp) were measured by NCCL on small calls, in
// which every channel posts one message per connection, so that post is in them. With k messages per connection a call is
// held up by k - 1:
//
//   bytes of a channel / rate >= (k - 1) x messages of the busiest GPU per message of every channel x cost of one
//
// and a call whose connections have one message each feels nothing, whatever longer calls would be cut into. Blind spots:
// send and recv (their chunks have a cost of their own, timing.hpp), PAT and CollNet; calls of few messages are counted in
// those of a long call, so that more bytes never take less time, where NCCL cuts them smaller; the pipeline of a long call
// fills at this rate too. Validated by `rehearse validate --only pairs`.
#pragma once

#include <cstdint>
#include <functional>
#include <map>

#include "base/units.hpp"
#include "sim/nccl/choice.hpp"
#include "sim/nccl/graphs.hpp"

namespace rehearse::sim {

// Messages between nodes of one GPU while each channel of a call passes on one.
struct Posts {
  double sends = 0;
  double receives = 0;
};

enum class Direction : uint8_t { kSend, kReceive };
// Is a message of `member` over its group's net of that number counted?
using CountedPost = std::function<bool(uint32_t member, uint32_t net, Direction direction)>;

// By member; only those that have any. Empty for algorithms whose messages are not known.
[[nodiscard]] std::map<uint32_t, Posts> posts_of(const Graphs& graphs, Algorithm algorithm,
                                                 int channels, const CountedPost& counted);

// Connections to other nodes that the busiest GPU sends on, or receives on, in a call of that many channels; 0: none known.
[[nodiscard]] double connections_of_busiest(const Graphs& graphs, Algorithm algorithm,
                                            int channels);

// Messages between nodes that the busiest GPU sends or receives while each of `channels` channels passes on one; 0: none.
[[nodiscard]] double messages_of_busiest(const Graphs& graphs, Algorithm algorithm, int channels);

// How messages get to the adapter: NCCL's own calls of verbs, or a plugin's of libfabric.
enum class PostedBy : uint8_t { kVerbs, kLibfabric };

// Payload rate of one channel that the busiest GPU's thread keeps up with, every connection having `messages` of
// `message_bytes`; 0: no limit.
struct Posting {
  int channels = 1;
  int64_t message_bytes = 0;
  double messages = 0;
  PostedBy by = PostedBy::kVerbs;
};
[[nodiscard]] BytesPerSec posting_limit(const Graphs& graphs, const Choice& choice,
                                        const Posting& posting);

}  // namespace rehearse::sim
