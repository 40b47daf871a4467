// SPDX-License-Identifier: Apache-2.0
// In which order a trial of the search looks at GPUs and network devices (NCCL model §7.3): the first
// that fits is kept, so the order decides.
#include <algorithm>

#include "sim/nccl/constants.hpp"
#include "sim/nccl/search_trial.hpp"

namespace rehearse::sim {

int SearchTrial::pci_bandwidth(uint32_t gpu) const {
  for (const uint32_t w : system_.devices[system_.gpus[gpu]].wires) {
    const Wire& wire = system_.wires[w];
    if (wire.type != WireType::kPci) continue;
    for (const uint32_t r : system_.devices[wire.to].wires) {
      if (system_.wires[r].to == wire.from) return static_cast<int>(std::min(left_[w], left_[r]));
    }
  }
  return -1;
}

void SearchTrial::add_order(uint32_t gpu, const Where& where) {
  struct Score {
    uint32_t gpu;
    int start, intra_hops, intra, inter_hops, inter_pci, inter;
  };
  const auto count = static_cast<uint32_t>(system_.gpus.size());
  const uint64_t flag = uint64_t{1} << graph_->n_channels;
  const bool by_net = where.back_to_net != -1;
  const bool towards_net = where.back_to_net == where.step + 1;
  const uint32_t net = graph_->channels[static_cast<size_t>(graph_->n_channels)].net_in;
  std::vector<Score> scores;
  for (uint32_t i = 1; i < count; ++i) {
    const uint32_t g = (gpu + i) % count;
    const Path& path = system_.gpu_path(gpu, g);
    if (path.wires.empty() || (used_[g] & flag) != 0) continue;
    Score score{g,
                static_cast<int>(i),
                static_cast<int>(path.wires.size()),
                static_cast<int>(path.bandwidth),
                0,
                0,
                0};
    if (by_net) {
      const Path& from = system_.from_net(net, g);
      score.inter_hops = static_cast<int>(from.wires.size());
      score.inter_pci = pci_bandwidth(g);
      score.inter = static_cast<int>(from.bandwidth);
    }
    scores.push_back(score);
  }
  std::sort(scores.begin(), scores.end(), [](const Score& a, const Score& b) {
    if (a.inter != b.inter) return a.inter > b.inter;
    if (a.inter_pci != b.inter_pci) return a.inter_pci > b.inter_pci;
    if (a.inter_hops != b.inter_hops) return a.inter_hops < b.inter_hops;
    if (a.intra != b.intra) return a.intra > b.intra;
    if (a.intra_hops != b.intra_hops) return a.intra_hops < b.intra_hops;
    return a.start < b.start;
  });
  const auto first = static_cast<std::ptrdiff_t>(order_.size());
  for (const Score& score : scores) order_.push_back(score.gpu);
  const bool alike = std::all_of(scores.begin(), scores.end(), [&](const Score& score) {
    return score.intra == scores[0].intra && score.intra_hops == scores[0].intra_hops;
  });
  if (by_net && !towards_net && alike) std::reverse(order_.begin() + first, order_.end());
}

// With switches only neighbours in number are tried: few peers for each GPU.
void SearchTrial::add_neighbours(uint32_t gpu) {
  const auto count = static_cast<uint32_t>(system_.gpus.size());
  const uint64_t flag = uint64_t{1} << graph_->n_channels;
  const uint32_t before = (gpu + count - 1) % count, after = (gpu + 1) % count;
  const auto add = [&](uint32_t g) {
    if (g != gpu && (used_[g] & flag) == 0 && way(system_.gpus[gpu], system_.gpus[g]).count > 0) {
      order_.push_back(g);
    }
  };
  switch (graph_->pattern) {
    case GraphPattern::kRing:
      if (before != after) add(before);
      add(after);
      break;
    case GraphPattern::kSplitTree:
    case GraphPattern::kBalancedTree:
      add(after);
      if (before != after) add(before);
      break;
    default:
      add(after);
  }
}

const std::vector<uint32_t>& SearchTrial::nets_for(PathType farthest, int gpu) {
  Nets& known = nets_[static_cast<size_t>(farthest) * (system_.gpus.size() + 1) +
                      static_cast<size_t>(gpu + 1)];
  if (!known.found) find_nets(farthest, gpu, known.nets);
  known.found = true;
  return known.nets;
}

void SearchTrial::find_nets(PathType farthest, int gpu, std::vector<uint32_t>& nets) const {
  const auto add = [&](uint32_t net) {
    if (std::find(nets.begin(), nets.end(), net) == nets.end()) nets.push_back(net);
  };
  std::vector<uint32_t> gpus;
  for (uint32_t g = 0; g < system_.gpus.size(); ++g) {
    if (gpu < 0 || g == static_cast<uint32_t>(gpu)) gpus.push_back(g);
  }
  // What a GPU would choose comes first: all of one GPU, then the next; across hosts in turns.
  std::vector<std::vector<uint32_t>> preferred;
  for (const uint32_t g : gpus) {
    preferred.emplace_back();
    for (uint32_t c = 0; c < kMaxChannels; ++c) {
      const uint32_t net = system_.local_net(g, c);
      if (net == UINT32_MAX || (c > 0 && net == preferred.back().front())) break;
      preferred.back().push_back(net);
    }
  }
  if (system_.hosts.size() > 1) {
    for (size_t c = 0; c < kMaxChannels; ++c) {
      for (const auto& list : preferred) {
        if (c < list.size()) add(list[c]);
      }
    }
  } else {
    for (const auto& list : preferred) {
      for (const uint32_t net : list) add(net);
    }
  }
  for (int type = 0; type <= static_cast<int>(farthest); ++type) {
    for (const uint32_t g : gpus) {
      for (uint32_t n = 0; n < system_.nets.size(); ++n) {
        if (static_cast<int>(system_.to_net(g, n).type) == type) add(n);
      }
    }
  }
}

}  // namespace rehearse::sim
