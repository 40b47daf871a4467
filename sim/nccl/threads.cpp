// SPDX-License-Identifier: Apache-2.0
#include "sim/nccl/threads.hpp"

#include <algorithm>

namespace rehearse::sim {

namespace {

constexpr int kSimpleMaxThreads = 512;
constexpr int kLlMaxThreads = 512;
constexpr int kLeastThreads = 96;  // three warps
constexpr int kLeastBlockThreads = 128;

// NCCL takes the maximum for a value that is no multiple of a warp, else clamps.
int given_threads(int given, int least, int most, int normal) {
  if (given <= 0) return normal;
  if (given % kWarpSize != 0) return most;
  return std::clamp(given, least, most);
}

// CollNetDirect gives up channels in halving steps and lowers its threshold half way through each.
int collnet_direct_channels(const NcclModel& model, std::int64_t bytes, Launch most,
                            std::int64_t threshold) {
  const std::int64_t heads = std::max(1, model.shape.collnet_heads);
  int channels = most.channels;
  bool small = true;
  for (int floor = 16; floor >= 1 && small; floor /= 2) {
    while ((small = bytes < heads * threshold * channels * most.threads) && channels > floor) {
      if (channels == floor + floor / 2) threshold /= 2;
      --channels;
    }
  }
  return channels;
}

}  // namespace

int max_threads(const NcclModel& model, Algorithm algorithm, Protocol protocol) {
  const Settings& settings = model.settings;
  if (algorithm == Algorithm::kPat) return 0;
  const bool ring_or_tree = algorithm == Algorithm::kRing || algorithm == Algorithm::kTree;
  if (!ring_or_tree) return protocol == Protocol::kSimple ? kMaxThreads : 0;
  switch (protocol) {
    case Protocol::kLl:
      return given_threads(settings.n_threads, 2 * kWarpSize, kLlMaxThreads, kLlMaxThreads);
    case Protocol::kLl128:
      return given_threads(settings.ll128_n_threads, kMaxThreads / 4, kMaxThreads, kMaxThreads);
    case Protocol::kSimple:
      break;
  }
  const GraphInfo& ring = model.shape.ring;
  const bool slow_ring = algorithm == Algorithm::kRing &&
                         static_cast<float>(ring.bw_intra) * static_cast<float>(ring.n_channels) <=
                             static_cast<float>(kPciBandwidth);
  return given_threads(settings.n_threads, 2 * kWarpSize, kSimpleMaxThreads,
                       slow_ring ? 256 : kSimpleMaxThreads);
}

std::int64_t thread_threshold(const NcclModel& model, Algorithm algorithm, Protocol protocol) {
  if (model.shape.n_ranks == 1) return 0;  // NCCL sets none
  if (algorithm == Algorithm::kTree || algorithm == Algorithm::kRing) {
    const std::int64_t given =
        model.settings.thread_thresholds[index_of(algorithm)][index_of(protocol)];
    if (given >= 0) return given;
  }
  if (protocol == Protocol::kSimple) return is_collnet(algorithm) ? 512 : 64;
  const bool ring_ll = algorithm == Algorithm::kRing && protocol == Protocol::kLl;
  return ring_ll ? std::int64_t{8} * model.shape.n_ranks : 8;
}

Launch launch_for(const NcclModel& model, const Call& call, Algorithm algorithm,
                  Protocol protocol) {
  const CommShape& shape = model.shape;
  const std::int64_t bytes = total_bytes(call, shape.n_ranks);
  const std::int64_t threshold = thread_threshold(model, algorithm, protocol);
  Launch launch{shape.n_channels, max_threads(model, algorithm, protocol)};

  if (algorithm == Algorithm::kCollnetDirect) {
    launch.channels = collnet_direct_channels(model, bytes, launch, threshold);
  } else if (algorithm == Algorithm::kNvlsTree ||
             (algorithm == Algorithm::kNvls && shape.n_nodes == 1)) {
    launch.channels = std::max(1, shape.nvls_channels);
  } else if (algorithm == Algorithm::kNvls) {
    launch.channels = std::clamp(shape.nvls_channels, 1, shape.n_channels);
  } else {
    const auto is_small = [&] { return bytes < threshold * launch.channels * launch.threads; };
    while (is_small() && launch.channels >= 2) --launch.channels;
    while (is_small() && launch.threads % 128 == 0) launch.threads /= 2;
  }

  if (algorithm == Algorithm::kRing && protocol == Protocol::kSimple) {
    launch.threads += kWarpSize;  // a warp for synchronisation
  }
  launch.threads = std::max(launch.threads, kLeastThreads);
  if (algorithm == Algorithm::kTree || algorithm == Algorithm::kPat) launch.threads = kMaxThreads;
  return launch;
}

int block_threads(int n_threads) { return std::max(n_threads, kLeastBlockThreads); }

}  // namespace rehearse::sim
