// SPDX-License-Identifier: Apache-2.0
#include "sim/nccl/split.hpp"

#include <algorithm>
#include <array>

#include "sim/nccl/rounding.hpp"

namespace rehearse::sim {

namespace {

constexpr std::int64_t kLeastTraffic = 16384;                 // bytes of traffic worth a channel
constexpr std::int64_t kMostTraffic = std::int64_t{1} << 60;  // keeps sums from overflowing

// Traffic of one payload byte; LL lines carry flags and count four times.
std::int64_t traffic_weight(const NcclModel& model, const SplitRequest& request) {
  const std::int64_t weight = traffic_per_byte(request.call.function, model.shape.n_ranks);
  return request.choice.protocol == Protocol::kLl ? 4 * weight : weight;
}

int channel_limit(const CommShape& shape, ChannelKind kind) {
  return kind == ChannelKind::kNvls ? std::max(1, shape.nvls_channels) : shape.n_channels;
}

// Where the next call of a kind starts.
struct Cursor {
  int channel = 0;
  std::int64_t used = 0;                     // traffic already on that channel
  std::int64_t per_channel = kLeastTraffic;  // traffic that fills one
  int limit = 1;                             // channels of the kind
};

// Cells on the first, on each middle and on the last channel.
struct Cells {
  std::int64_t lo = 0;
  std::int64_t each = 0;
  std::int64_t mid_channels = 0;
  std::int64_t hi = 0;
};

Cells deal_cells(std::int64_t cells, std::int64_t cell_traffic, Cursor& at) {
  Cells deal;
  deal.each = std::min(cells, ceil_div(at.per_channel, cell_traffic));
  deal.lo = at.channel + 1 == at.limit
                ? cells
                : std::min(cells, ceil_div(at.per_channel - at.used, cell_traffic));
  const std::int64_t rest = cells - deal.lo;
  deal.mid_channels = rest / deal.each;
  deal.hi = rest % deal.each;
  const std::int64_t wanted = (deal.lo != 0) + deal.mid_channels + (deal.hi != 0);
  if (at.channel + wanted > at.limit) {
    deal.mid_channels = at.limit - at.channel - 2;
    deal.each = rest / (deal.mid_channels + 1);
    deal.hi = deal.each + rest % (deal.mid_channels + 1);
  }
  if (deal.hi == 0 && deal.mid_channels > 0) {
    deal.hi = deal.each;
    --deal.mid_channels;
  }
  if (deal.lo == 0) {  // the channel was full: the call starts on the next one
    ++at.channel;
    if (deal.mid_channels == 0) {
      deal.lo = deal.hi;
      deal.hi = 0;
    } else {
      deal.lo = deal.each;
      --deal.mid_channels;
    }
  }
  return deal;
}

ChannelSplit split_one(const NcclModel& model, const SplitRequest& request, Cursor& at) {
  const std::int64_t weight = traffic_weight(model, request);
  const std::int64_t cell_bytes = round_up(ceil_div(kLeastTraffic, weight), 16);
  const std::int64_t cell_elements = cell_bytes / size_of(request.call.type);
  const std::int64_t cell_traffic = cell_bytes * weight;
  const std::int64_t cells = ceil_div(payload_bytes(request.call), cell_bytes);
  const Cells deal = deal_cells(cells, cell_traffic, at);

  ChannelSplit split;
  split.channel_lo = at.channel;
  split.count_lo = deal.lo * cell_elements;
  split.count_mid = deal.mid_channels > 0 ? deal.each * cell_elements : 0;
  split.count_hi = deal.hi * cell_elements;
  std::int64_t& last = split.count_hi != 0 ? split.count_hi : split.count_lo;
  last -= cells * cell_elements - request.call.count;
  split.channel_hi = at.channel + static_cast<int>(deal.mid_channels) + (deal.hi != 0 ? 1 : 0);

  if (deal.hi != 0) {
    at.channel = split.channel_hi;
    at.used = deal.hi * cell_traffic;
  } else {
    at.used += deal.lo * cell_traffic;
  }
  if (at.used >= at.per_channel && at.channel + 1 != at.limit) {
    ++at.channel;
    at.used = 0;
  }
  return split;
}

struct KindTotal {
  std::int64_t traffic = 0;
  int channels = 0;
};

}  // namespace

ChannelKind kind_of(const CommShape& shape, Algorithm algorithm) {
  if (is_collnet(algorithm)) return ChannelKind::kCollnet;
  if (algorithm == Algorithm::kNvls && shape.n_nodes > 1) return ChannelKind::kCollnetNvls;
  return is_nvls(algorithm) ? ChannelKind::kNvls : ChannelKind::kPlain;
}

bool shares_evenly(ChannelKind kind) {
  return kind == ChannelKind::kCollnet || kind == ChannelKind::kCollnetNvls;
}

std::vector<ChannelSplit> split_channels(const NcclModel& model,
                                         std::span<const SplitRequest> requests) {
  std::array<KindTotal, 4> totals;
  for (const SplitRequest& request : requests) {
    if (request.call.count == 0) continue;  // NCCL drops empty calls before it plans
    const ChannelKind kind = kind_of(model.shape, request.choice.algorithm);
    KindTotal& total = totals[index_of(kind)];
    const std::int64_t traffic = payload_bytes(request.call) * traffic_weight(model, request);
    total.traffic = std::min(total.traffic + std::max(kLeastTraffic, traffic), kMostTraffic);
    total.channels = std::min(total.channels + std::max(1, request.choice.max_channels),
                              channel_limit(model.shape, kind));
  }

  std::vector<ChannelSplit> splits;
  splits.reserve(requests.size());
  Cursor at;
  bool first = true;
  ChannelKind previous = ChannelKind::kPlain;
  for (const SplitRequest& request : requests) {
    const ChannelKind kind = kind_of(model.shape, request.choice.algorithm);
    ChannelSplit split;
    if (request.call.count != 0 && shares_evenly(kind)) {
      split.channel_hi = std::max(1, request.choice.max_channels) - 1;
      split.count_lo = request.call.count;
    } else if (request.call.count != 0) {
      if (first || kind != previous) {
        const KindTotal& total = totals[index_of(kind)];
        at = {0, 0, std::max(kLeastTraffic, total.traffic / total.channels),
              channel_limit(model.shape, kind)};
      }
      first = false;
      previous = kind;
      split = split_one(model, request, at);
    }
    split.kind = kind;
    splits.push_back(split);
  }
  return splits;
}

}  // namespace rehearse::sim
