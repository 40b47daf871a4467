// SPDX-License-Identifier: Apache-2.0
#include "sim/nccl/search_trial.hpp"

#include <algorithm>
#include <cmath>

namespace rehearse::sim {
namespace {

// Bandwidths are kept to three decimals, as NCCL does against rounding. std::round is a call on
// machines without SSE4.1, and this is where a search spends its time.
float rounded(float x) {
  constexpr float kWhole = 1 << 23;  // from here on a float has no decimals
  if (!(std::abs(x) < kWhole)) return x;
  const auto whole = static_cast<float>(static_cast<int>(x));
  const float rest = x - whole;
  return rest >= .5F ? whole + 1 : rest <= -.5F ? whole - 1 : whole;
}
void take(float& left, float bandwidth) { left = rounded((left - bandwidth) * 1000) / 1000; }

// The PCI order of the first channel is tried outside the budget.
constexpr int kReferenceBudget = 1 << 10;

}  // namespace

SearchTrial::SearchTrial(const NodeSystem& system, bool collnet)
    : system_(system),
      collnet_(collnet),
      used_(system.gpus.size()),
      ways_(system.devices.size() * system.devices.size()),
      nets_((static_cast<size_t>(PathType::kDis) + 1) * (system.gpus.size() + 1)) {
  for (const Wire& wire : system.wires) left_.push_back(wire.bandwidth);
  for (const SystemNet& net : system.nets) net_left_.push_back(net.bandwidth);
  std::vector<DeviceId> ends = system.gpus;
  for (const SystemNet& net : system.nets) ends.push_back(net.device);
  if (system.nvswitch != kNoDevice) ends.push_back(system.nvswitch);
  for (const DeviceId from : ends) {
    for (const DeviceId to : ends) survey(from, to);
  }
  for (size_t n = 0; n < system.nets.size(); ++n) near_gpus_.push_back(system.nearest_gpus(n));
}

void SearchTrial::survey(DeviceId from, DeviceId to) {
  const Path& path = system_.path(from, to);
  const bool from_gpu = system_.devices[from].type == DeviceType::kGpu;
  bool dear = false;
  for (const uint32_t w : path.wires) {
    const SystemDevice& device = system_.devices[system_.wires[w].to];
    // Peer traffic through an Intel root complex loses a sixth.
    dear |= path.type == PathType::kPhb && from_gpu && device.type == DeviceType::kCpu &&
            device.arch == CpuArch::kX86 && device.vendor == CpuVendor::kIntel;
  }
  Way& out = ways_[static_cast<size_t>(from) * system_.devices.size() + to];
  out = {static_cast<uint32_t>(steps_.size()), static_cast<uint32_t>(path.wires.size()), path.type};
  for (const uint32_t w : path.wires) {
    const Wire& wire = system_.wires[w];
    const SystemDevice& device = system_.devices[wire.to];
    Step step{w};
    step.dear = dear && wire.type == WireType::kPci;
    step.eighth = device.type == DeviceType::kGpu && device.compute_capability < 80 && !from_gpu;
    step.whole = device.type == DeviceType::kCpu && device.arch == CpuArch::kPower &&
                 wire.type == WireType::kNvlink;
    for (const uint32_t r : device.wires) {
      const bool back = system_.wires[r].to == wire.from && system_.wires[r].type == wire.type;
      if (back && (step.eighth || step.whole)) step.back = r;
    }
    steps_.push_back(step);
  }
}

int SearchTrial::run(TrialGraph& graph, TrialGraph& best, int budget) {
  graph_ = &graph;
  best_ = &best;
  time_ = budget;
  graph.n_channels = 0;
  start();
  return time_;
}

// How many of the steps had enough.
size_t SearchTrial::reserve(std::span<const Step> steps, float bandwidth) {
  const float dear = bandwidth * 6 / 5;
  for (size_t i = 0; i < steps.size(); ++i) {
    const Step& step = steps[i];
    const float ahead = step.dear ? dear : bandwidth;
    if (left_[step.wire] < ahead) return i;
    if (step.back != UINT32_MAX) {
      float behind = step.eighth ? ahead / 8 : 0;
      if (step.whole) behind += ahead;
      if (left_[step.back] < behind) return i;
      take(left_[step.wire], ahead);
      take(left_[step.back], behind);
      continue;
    }
    take(left_[step.wire], ahead);
  }
  return steps.size();
}

bool SearchTrial::follow(Place from, Place to, float factor) {
  if (from.device == kNoDevice) return true;
  const Way& path = way(from.device, to.device);
  const bool intra = from.inside && to.inside;
  const PathType farthest = intra ? graph_->type_intra : graph_->type_inter;
  if (path.type >= PathType::kDis) return false;
  if (factor == 1) {
    if (path.type > farthest) return false;
    const bool tree = graph_->pattern == GraphPattern::kBalancedTree ||
                      graph_->pattern == GraphPattern::kTree ||
                      graph_->pattern == GraphPattern::kSplitTree;
    if (tree && way(to.device, from.device).type > farthest) return false;
  }
  const float bandwidth = (intra ? graph_->intra : graph_->inter) * factor;
  const std::span<const Step> steps(steps_.data() + path.first, path.count);
  const size_t reached = reserve(steps, bandwidth);
  if (reached < steps.size()) {
    reserve(steps.first(reached), -bandwidth);
    return false;
  }
  graph_->hops += static_cast<int>(factor * static_cast<float>(steps.size()));
  return true;
}

bool SearchTrial::is_better() const {
  const TrialGraph& g = *graph_;
  const TrialGraph& b = *best_;
  if (g.n_channels < g.min_channels) return false;
  const auto n = static_cast<float>(g.n_channels), m = static_cast<float>(b.n_channels);
  if (g.pattern == GraphPattern::kNvls) {
    return (g.n_channels > b.n_channels && g.n_channels <= static_cast<int>(system_.gpus.size())) ||
           n * g.inter > m * b.inter;
  }
  if (n * g.intra != m * b.intra) return n * g.intra > m * b.intra;
  return g.pattern == b.pattern && g.cross_nic == b.cross_nic && g.hops < b.hops;
}

void SearchTrial::finish_channel() {
  ++graph_->n_channels;
  if (is_better()) {
    *best_ = *graph_;
    if (graph_->n_channels == graph_->max_channels) time_ = -1;
  }
  if (graph_->n_channels < graph_->max_channels) start();
  --graph_->n_channels;
}

void SearchTrial::try_gpu(Place from, uint32_t gpu, const Where& where) {
  const uint64_t flag = uint64_t{1} << graph_->n_channels;
  if (!follow(from, gpu_place(gpu), 1)) return;
  used_[gpu] ^= flag;
  at_gpu(gpu, where);
  used_[gpu] ^= flag;
  follow(from, gpu_place(gpu), -1);
}

void SearchTrial::at_gpu(uint32_t gpu, const Where& where) {
  if (time_ <= 0) return;
  --time_;
  const int last = static_cast<int>(system_.gpus.size()) - 1;
  if (where.step > last) return finish_channel();
  channel().gpus[static_cast<size_t>(where.step)] = gpu;
  if (where.step == where.back_to_net) return leave_to_net(gpu, where);
  if (graph_->pattern == GraphPattern::kNvls) return nvls(gpu, where);
  if (graph_->pattern == GraphPattern::kCollnetDirect) return collnet_direct(gpu, where);
  if (where.step < last) return next_gpus(gpu, where);
  Where next = where;
  next.step = last + 1;
  if (where.step == where.back_to_first) {
    const uint32_t first = channel().gpus.front();
    if (!follow(gpu_place(gpu), gpu_place(first), 1)) return;
    next.back_to_first = -1;
    at_gpu(first, next);
    follow(gpu_place(gpu), gpu_place(first), -1);
    return;
  }
  next.back_to_net = next.back_to_first = -1;
  at_gpu(gpu, next);
}

void SearchTrial::leave_to_net(uint32_t gpu, const Where& where) {
  const uint32_t start_net = channel().net_in;
  const GraphPattern pattern = graph_->pattern;
  for (const uint32_t net : nets_for(graph_->type_inter, static_cast<int>(gpu))) {
    if (pattern == GraphPattern::kTree && net != start_net) continue;
    if (pattern == GraphPattern::kRing && graph_->cross_nic == 2) {
      if ((graph_->n_channels & 1) != 0 && net != last_channel().net_in) continue;
    } else if (graph_->cross_nic == 0 && net != start_net) {
      continue;
    }
    // A balanced tree puts half on each of the first two GPUs.
    Where next = where;
    next.back_to_net = -1;
    const float whole = graph_->inter;
    const bool halved = pattern == GraphPattern::kBalancedTree;
    if (halved) {
      if (where.step == 0) {
        next.back_to_net = 1;
      } else if (net != channel().net_out) {
        continue;
      }
      graph_->inter /= 2;
    }
    const bool free = follow(gpu_place(gpu), net_place(net), 1);
    graph_->inter = whole;
    if (!free) continue;
    channel().net_out = net;
    at_gpu(gpu, next);
    if (halved) graph_->inter /= 2;
    follow(gpu_place(gpu), net_place(net), -1);
    graph_->inter = whole;
  }
}

void SearchTrial::next_gpus(uint32_t gpu, const Where& where) {
  Where next = where;
  ++next.step;
  if (where.order == Order::kPci) {
    return try_gpu(gpu_place(gpu), static_cast<uint32_t>(where.step) + 1, next);
  }
  if (where.order == Order::kReplay) {
    return try_gpu(gpu_place(gpu), last_channel().gpus[static_cast<size_t>(where.step) + 1], next);
  }
  const size_t first = order_.size();
  if (system_.nvswitch != kNoDevice) {
    add_neighbours(gpu);
  } else {
    add_order(gpu, where);
  }
  const size_t last = order_.size();
  for (size_t i = first; i < last; ++i) try_gpu(gpu_place(gpu), order_[i], next);
  order_.resize(first);
}

void SearchTrial::nvls(uint32_t head, const Where& where) {
  const Place hub{system_.nvswitch, true};
  const auto count = static_cast<uint32_t>(system_.gpus.size());
  const auto share = [&](uint32_t g) { return g == head ? 2.0F : 1.0F; };
  Where next = where;
  next.step = static_cast<int>(count);
  next.back_to_net = next.back_to_first = -1;
  uint32_t down = 0, up = 0;
  while (down < count && follow(hub, gpu_place(down), share(down))) ++down;
  if (down == count) {
    while (up < count && follow(gpu_place(up), hub, share(up))) ++up;
    if (up == count) at_gpu(head, next);
    while (up > 0) {
      --up;
      follow(gpu_place(up), hub, -share(up));
    }
  }
  while (down > 0) {
    --down;
    follow(hub, gpu_place(down), -share(down));
  }
}

void SearchTrial::collnet_direct(uint32_t head, const Where& where) {
  const auto count = static_cast<uint32_t>(system_.gpus.size());
  const float share = 1.0F / static_cast<float>(count - 1);
  Where next = where;
  next.step = static_cast<int>(count);
  next.back_to_net = next.back_to_first = -1;
  uint32_t out = 0, in = 0;
  while (out < count && follow(gpu_place(head), gpu_place(out), share)) ++out;
  if (out == count) {
    while (in < count && follow(gpu_place(in), gpu_place(head), share)) ++in;
    if (in == count) {
      size_t step = 1;
      for (uint32_t g = 0; g < count; ++g) {
        if (g != head) channel().gpus[step++] = g;
      }
      at_gpu(head, next);
    }
    while (in > 0) {
      --in;
      follow(gpu_place(in), gpu_place(head), -share);
    }
  }
  while (out > 0) {
    --out;
    follow(gpu_place(head), gpu_place(out), -share);
  }
}

void SearchTrial::start() {
  const int gpus = static_cast<int>(system_.gpus.size());
  const bool ring = graph_->pattern == GraphPattern::kRing;
  if (!system_.nets.empty()) {
    const int back = ring ? gpus - 1 : graph_->pattern == GraphPattern::kSplitTree ? 1 : 0;
    return start_from_net(back, -1);
  }
  Where where;
  where.back_to_first = ring ? gpus - 1 : -1;
  if (graph_->pattern == GraphPattern::kNvls) {
    return try_gpu({}, static_cast<uint32_t>(graph_->n_channels), where);
  }
  if (graph_->n_channels == 0) {
    where.order = Order::kPci;
    try_gpu({}, 0, where);
  } else {
    where.order = Order::kReplay;
    try_gpu({}, last_channel().gpus.front(), where);
  }
  if (graph_->same_channels && graph_->n_channels > 0) return;
  where.order = Order::kSearch;
  for (uint32_t g = 0; g < system_.gpus.size(); ++g) try_gpu({}, g, where);
}

void SearchTrial::start_from_net(int back_to_net, int back_to_first) {
  const auto bandwidth = static_cast<float>(static_cast<int>(graph_->inter));
  const bool heads_only =
      graph_->pattern == GraphPattern::kNvls || graph_->pattern == GraphPattern::kCollnetDirect;
  const std::vector<uint32_t>& nets = nets_for(graph_->type_inter, -1);
  bool found = false;
  Where where;
  where.back_to_net = back_to_net;
  where.back_to_first = back_to_first;
  for (size_t i = 0; i < nets.size() && !(heads_only && found); ++i) {
    const uint32_t net = nets[(static_cast<size_t>(graph_->n_channels) + i) % nets.size()];
    const SystemNet& device = system_.nets[net];
    if (collnet_ && !device.collnet) continue;
    if (net_left_[net] < bandwidth) continue;
    if (graph_->pattern == GraphPattern::kRing && graph_->cross_nic == 2 &&
        (graph_->n_channels & 1) != 0 && net != last_channel().net_out) {
      continue;
    }
    channel().net_in = net;
    net_left_[net] -= bandwidth;
    if (heads_only) {
      bool taken =
          device.local_gpu == UINT32_MAX || graph_->n_channels >= static_cast<int>(nets.size());
      for (int c = 0; c < graph_->n_channels && !taken; ++c) {
        taken = graph_->channels[static_cast<size_t>(c)].gpus.front() == device.local_gpu;
      }
      if (!taken) {
        try_gpu(net_place(net), device.local_gpu, where);
        found = true;
      }
    } else if (graph_->n_channels > 0 && graph_->same_channels) {
      where.order = Order::kReplay;
      try_gpu(net_place(net), last_channel().gpus.front(), where);
    } else {
      if (graph_->n_channels == 0 && system_.nvswitch == kNoDevice) {
        const int outside = time_;
        time_ = kReferenceBudget;
        where.order = Order::kPci;
        try_gpu(net_place(net), 0, where);
        time_ = time_ == -1 ? -1 : outside;
      }
      where.order = Order::kSearch;
      if (device.local_gpu != UINT32_MAX) try_gpu(net_place(net), device.local_gpu, where);
      for (const uint32_t g : near_gpus_[net]) {
        if (g != device.local_gpu) try_gpu(net_place(net), g, where);
      }
    }
    net_left_[net] += bandwidth;
  }
}

}  // namespace rehearse::sim
