// SPDX-License-Identifier: Apache-2.0
// Which channels carry which part of a call (NCCL 2.28.9 scheduleCollTasksToPlan; NCCL model §6.1).
// The calls of a group fill the channels one after another, like text fills lines: each call starts
// where the one before it ended, and a channel is full when it has its share of the traffic of all.
// Data moves in cells of 16 KiB of traffic. CollNet calls instead share all their channels evenly.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/nccl/call.hpp"
#include "sim/nccl/choice.hpp"
#include "sim/nccl/model.hpp"

namespace rehearse::sim {

// Calls of one kind share channels; a group runs the kinds in this order.
enum class ChannelKind { kPlain, kNvls, kCollnet, kCollnetNvls };

// NVLS is of CollNet kind between nodes.
[[nodiscard]] ChannelKind kind_of(const CommShape& shape, Algorithm algorithm);
[[nodiscard]] bool shares_evenly(ChannelKind kind);

// Channels channel_lo to channel_hi. The first has count_lo elements, the last count_hi, each one
// between count_mid; 0 when there is no such channel. Of CollNet kind: count_lo is the whole count
// and all channels share it evenly. An empty call has channel_hi < channel_lo.
struct ChannelSplit {
  ChannelKind kind = ChannelKind::kPlain;
  int channel_lo = 0;
  int channel_hi = -1;
  std::int64_t count_lo = 0;
  std::int64_t count_mid = 0;
  std::int64_t count_hi = 0;

  [[nodiscard]] int n_channels() const { return channel_hi - channel_lo + 1; }
};

struct SplitRequest {
  Call call;      // accepted by check_call
  Choice choice;  // max_channels is at least 1
};

// One split per request, in order. The requests are the calls of one group, kinds together.
[[nodiscard]] std::vector<ChannelSplit> split_channels(const NcclModel& model,
                                                       std::span<const SplitRequest> requests);

}  // namespace rehearse::sim
