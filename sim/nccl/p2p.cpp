// SPDX-License-Identifier: Apache-2.0
#include "sim/nccl/p2p.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <string>

#include "sim/nccl/constants.hpp"
#include "sim/nccl/rounding.hpp"

namespace rehearse::sim {

namespace {

constexpr int kTransfersPerBatch = 8;  // transfers that run together on one channel
constexpr std::int64_t kPartAlign = 4096;
constexpr std::int64_t kMaxP2pBytes = std::int64_t{1} << 48;
constexpr int kMaxP2pRanks = 1 << 20;

int power_of_two_up(int n) {
  return static_cast<int>(std::bit_ceil(static_cast<unsigned>(std::max(1, n))));
}

Result<void> check(const P2pShape& shape) {
  const bool counts = shape.n_nodes >= 1 && shape.n_nodes <= kMaxP2pRanks &&
                      shape.ranks_per_node >= 1 &&
                      shape.ranks_per_node <= kMaxP2pRanks / shape.n_nodes &&
                      shape.n_channels >= 1 && shape.n_channels <= kMaxChannels &&
                      shape.nics_per_gpu >= 1 && shape.nics_per_gpu <= kMaxChannels;
  const bool links = std::isfinite(shape.nvlink_path_gbps) && shape.nvlink_path_gbps >= 0 &&
                     std::isfinite(shape.nvlink_link_gbps) && shape.nvlink_link_gbps > 0 &&
                     shape.nvlink_path_gbps / shape.nvlink_link_gbps < kMaxP2pRanks;
  if (counts && links) return {};
  return fail(Code::kBadInput, "a figure of the point-to-point shape is out of range", {},
              "counts start at 1, channels end at 64, bandwidths are finite");
}

// To a peer over the network: enough channels for the NICs, or two unless channels get crowded.
int network_channels(const P2pShape& shape, const Settings& settings, int channels) {
  if (settings.channels_per_net_peer) return *settings.channels_per_net_peer;
  int crowd = 2;
  while (crowd > 1 && std::int64_t{crowd} * shape.n_ranks() > std::int64_t{4} * channels) {
    crowd /= 2;
  }
  return std::max(shape.nics_per_gpu, crowd);
}

int peer_channels(const P2pShape& shape, const Settings& settings, int channels) {
  int least = channels;
  if (shape.ranks_per_node > 1) {
    const int links = static_cast<int>(shape.nvlink_path_gbps / shape.nvlink_link_gbps);
    const bool nvlink = shape.all_nvlink && shape.nvlink_path_gbps > 0;
    least = std::min(least, nvlink ? 2 * std::max(1, links) : 2);
  }
  if (shape.n_nodes > 1) least = std::min(least, network_channels(shape, settings, channels));
  return least;
}

// NCCL keeps chunk sizes in eight bits: the leading one and three bits below it.
std::int64_t rounded_chunk(std::int64_t bytes) {
  const int bits = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(bytes)));
  const int dropped = std::max(0, bits - 4);
  return bytes >> dropped << dropped;
}

int reversed_bits(int value, int n_bits) {
  int reversed = 0;
  for (int bit = 0; bit < n_bits; ++bit) reversed = reversed << 1 | (value >> bit & 1);
  return reversed;
}

// Ranks that are visited as one group: all of one node, else the largest power of two up to eight
// that divides a node.
int group_size(const P2pShape& shape) {
  return shape.n_nodes == 1 ? shape.ranks_per_node
                            : std::gcd(kTransfersPerBatch, shape.ranks_per_node);
}

int first_channel(const P2pShape& shape, const P2pLayout& layout, int round) {
  int base = round;
  if (shape.n_nodes > 1) {
    const int group = group_size(shape);
    base = round / group * static_cast<int>(ceil_div(group, kTransfersPerBatch)) +
           round % group / kTransfersPerBatch;
  }
  return reversed_bits(base, std::countr_zero(static_cast<unsigned>(layout.channels)));
}

}  // namespace

Result<P2pLayout> p2p_layout(const P2pShape& shape, const Settings& settings) {
  if (auto ok = check(shape); !ok) return tl::unexpected(ok.error());
  const int channels = std::clamp(
      std::max(std::min(shape.n_channels, settings.max_p2p_channels), settings.min_p2p_channels), 1,
      kMaxChannels);
  P2pLayout layout;
  layout.channels_per_peer =
      power_of_two_up(std::clamp(peer_channels(shape, settings, channels), 1, kMaxChannels));
  layout.channels = power_of_two_up(channels);
  const std::int64_t inside =
      shape.all_nvlink ? settings.p2p_nvl_chunk_bytes : settings.p2p_pci_chunk_bytes;
  layout.step_bytes = std::min(shape.n_nodes > 1 ? settings.p2p_net_chunk_bytes : inside,
                               settings.step_bytes(Protocol::kSimple));
  return layout;
}

Result<P2pTransfer> p2p_transfer(const P2pShape& shape, const Settings& settings,
                                 std::int64_t bytes, P2pRoute route) {
  RH_TRY(const P2pLayout layout, p2p_layout(shape, settings));
  if (bytes < 0 || bytes > kMaxP2pBytes) {
    return fail(Code::kBadInput,
                "a transfer of " + std::to_string(bytes) + " bytes is not possible");
  }
  const bool network = route == P2pRoute::kNetwork;
  const bool has_ll = !network || settings.p2p_net_ll_buffers;
  P2pTransfer transfer;
  if (has_ll && bytes <= layout.channels_per_peer * settings.p2p_ll_threshold_bytes) {
    transfer.protocol = Protocol::kLl;
  }
  const bool simple = transfer.protocol == Protocol::kSimple;
  const std::int64_t step = simple ? layout.step_bytes : settings.step_bytes(Protocol::kLl);

  std::int64_t chunk = step;
  if (settings.p2p_chunk_bytes != 0) {
    chunk = settings.p2p_chunk_bytes;
  } else if (network && simple && bytes < step) {
    chunk /= 4;
  } else if (network && bytes < 8 * step) {
    chunk /= 2;
  }
  if (!simple) chunk /= 2;  // half of an LL line is flags
  transfer.chunk_bytes = std::max<std::int64_t>(1, rounded_chunk(chunk));
  transfer.channels = 1;
  if (bytes == 0) return transfer;

  const std::int64_t least_part = shape.n_nodes > 1 ? step / 2 : step / 8;
  const std::int64_t most_part = shape.n_nodes > 1 ? step : 32 * step;
  int start = layout.channels_per_peer;
  while (start > 1 && std::int64_t{start} * shape.n_ranks() > layout.channels) start /= 2;
  transfer.channels = static_cast<int>(std::min<std::int64_t>(start, ceil_div(bytes, least_part)));
  std::int64_t part = std::max(least_part, ceil_div(bytes, transfer.channels));
  while (part > most_part && transfer.channels <= layout.channels_per_peer / 2) {
    transfer.channels *= 2;
    part = ceil_div(bytes, transfer.channels);
  }
  transfer.part_bytes = round_up(ceil_div(bytes, transfer.channels), kPartAlign);
  transfer.steps_per_part = ceil_div(std::min(transfer.part_bytes, bytes), transfer.chunk_bytes);
  return transfer;
}

Result<std::vector<P2pRound>> p2p_rounds(const P2pShape& shape, const Settings& settings,
                                         int rank) {
  RH_TRY(const P2pLayout layout, p2p_layout(shape, settings));
  if (rank < 0 || rank >= shape.n_ranks()) {
    return fail(Code::kBadInput, "rank " + std::to_string(rank) + " is not in the communicator");
  }
  const int size = group_size(shape);
  const int groups = shape.n_ranks() / size;
  const int mask = power_of_two_up(groups) - 1;
  const int group = rank / size;
  const int local = rank % size;
  std::vector<P2pRound> rounds;
  rounds.reserve(static_cast<std::size_t>(shape.n_ranks()));
  // δ visits 0, 1, 3, 6, 10, … modulo a power of two, which meets every distance once.
  int distance = 0;
  for (int step = 1; step <= mask + 1; ++step) {
    if (distance < groups) {
      const int to = (group + distance) % groups * size;
      const int from = (group - distance + groups) % groups * size;
      for (int d = 0; d < size; ++d) {
        const int round = static_cast<int>(rounds.size());
        rounds.push_back({to + (local + d) % size, from + (local - d + size) % size,
                          first_channel(shape, layout, round)});
      }
    }
    distance = (distance + step) & mask;
  }
  return rounds;
}

}  // namespace rehearse::sim
