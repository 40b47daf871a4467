// SPDX-License-Identifier: Apache-2.0
// A call as its messages: who sends what to whom over which links, after which other messages. For
// members of rooted calls and pairs that come at different times (hops), and for `--fidelity step`,
// where every message is a flow of its own.
//
// Rings move step by step: a GPU sends a chunk when it has it and has sent the one before (store and
// forward; channels that share a ring move together, as weight). Trees and chains pass on part after
// part (pipeline_fill.hpp), so that their pipeline fills and drains; switches forward data as it comes (cut-through): one
// message per edge and direction, all at once. PAT takes the pattern of a ring; what the network itself
// reduces (CollNet) is as fluid here as there. All-to-all is one message per pair.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/nccl/traffic.hpp"

namespace rehearse::sim {

struct Message {
  uint32_t from = 0, to = 0;  // members
  uint32_t route = 0;         // index into MessagePlan::routes
  double bytes = 0;           // per unit of the route's weights
};

struct MessagePlan {
  std::vector<FlowLoad> routes;  // `bytes` is unused; `cap` holds per message
  std::vector<Message> messages;
  // Messages that must have ended before message m starts: after[after_begin[m] ..
  // after_begin[m+1]).
  std::vector<uint32_t> after_begin, after;
  // Chains: messages of each hop, which come hop by hop; 0: all messages start as one.
  uint32_t per_hop = 0;
};

// Nothing for calls of one member.
[[nodiscard]] Result<MessagePlan> message_plan(const ModelContext& context,
                                               const CommunicatorModel& model,
                                               const traces::Call& call, uint32_t member);

// Fills `hops`, `hop_bytes` and `credit` of the traffic of a rooted call or a pair; leaves others
// as they are.
void add_hops(const ModelContext& context, const CommunicatorModel& model, const traces::Call& call,
              uint32_t member, CallTraffic& traffic);

}  // namespace rehearse::sim
