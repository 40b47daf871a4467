// SPDX-License-Identifier: Apache-2.0
#include "sim/nccl/path_finder.hpp"

#include <algorithm>

#include "sim/nccl/constants.hpp"

namespace rehearse::sim {
namespace {

constexpr float kLocalBandwidth = 5000;

PathType type_of(WireType type) {
  switch (type) {
    case WireType::kNvlink:
      return PathType::kNvl;
    case WireType::kC2c:
      return PathType::kC2c;
    case WireType::kPci:
      return PathType::kPix;
    case WireType::kSystem:
      return PathType::kSys;
    case WireType::kNetwork:
      return PathType::kLoc;
  }
  return PathType::kLoc;
}

// The worse of two parts; a coherent link and a root port together are P2C.
PathType joined(PathType a, PathType b) {
  const PathType worse = std::max(a, b);
  if (worse == PathType::kPhb && std::min(a, b) == PathType::kC2c) return PathType::kP2c;
  return worse;
}

bool power_of_two(size_t n) { return n > 0 && (n & (n - 1)) == 0; }

// The bits of `value` below `power` in reverse order.
uint32_t mirrored(uint32_t value, uint32_t power) {
  uint32_t out = 0;
  for (uint32_t low = 1, high = power >> 1; low < power; low <<= 1, high >>= 1) {
    if ((value & low) != 0) out |= high;
  }
  return out;
}

template <typename PathAt>
std::vector<uint32_t> nearest(size_t count, PathAt path_at) {
  std::vector<uint32_t> out;
  float most = 0;
  PathType type = PathType::kDis;
  for (uint32_t i = 0; i < count; ++i) {
    const Path& path = path_at(i);
    if (path.bandwidth > most || (path.bandwidth == most && path.type < type)) {
      most = path.bandwidth;
      type = path.type;
      out.clear();
    }
    if (path.bandwidth == most && path.type == type && path.type != PathType::kDis) {
      out.push_back(i);
    }
  }
  return out;
}

}  // namespace

void PathFinder::run() {
  system_.paths_.assign(system_.devices.size() * system_.devices.size(), {});
  for (DeviceId id = 0; id < system_.devices.size(); ++id) {
    const DeviceType type = system_.devices[id].type;
    if (type == DeviceType::kPci || type == DeviceType::kNic) continue;
    search_from(id);
  }
  keep_direct();
  without_peer_access();
  serve();
  through_neighbours();
  serve();
}

void PathFinder::search_from(DeviceId base) {
  Path& own = system_.at(base, base);
  own = {{}, kLocalBandwidth, PathType::kLoc, UINT32_MAX};
  std::vector<DeviceId> level = {base};
  while (!level.empty()) {
    std::vector<DeviceId> next;
    for (const DeviceId id : level) {
      for (const uint32_t w : system_.devices[id].wires) {
        const Wire wire = system_.wires[w];
        const Path path = system_.at(id, base);
        const SystemDevice& here = system_.devices[id];
        const SystemDevice& there = system_.devices[wire.to];
        // A GPU may stand between two others on NVLink, once.
        const bool passes_gpu = id != base && here.type == DeviceType::kGpu;
        if (passes_gpu && (!settings_.through_gpu || wire.type != WireType::kNvlink ||
                           there.type != DeviceType::kGpu || path.wires.size() > 1)) {
          continue;
        }
        Path& known = system_.at(wire.to, base);
        const float bandwidth = std::min(path.bandwidth, wire.bandwidth);
        const bool better = known.bandwidth == 0 || known.wires.size() > path.wires.size();
        if (!better || known.bandwidth >= bandwidth) continue;
        // The way back along the same pair of wires.
        uint32_t back = UINT32_MAX;
        for (const uint32_t r : there.wires) {
          if (system_.wires[r].to == id && system_.wires[r].type == wire.type) back = r;
        }
        if (back == UINT32_MAX) continue;
        PathType type = type_of(wire.type);
        if (here.type == DeviceType::kPci && there.type == DeviceType::kPci) type = PathType::kPxb;
        if (wire.type == WireType::kPci &&
            (here.type == DeviceType::kCpu || there.type == DeviceType::kCpu)) {
          type = PathType::kPhb;
        }
        if (passes_gpu && path.type == PathType::kNvl && type == PathType::kNvl) {
          type = PathType::kNvb;
        }
        Path found;
        found.wires.push_back(back);
        found.wires.insert(found.wires.end(), path.wires.begin(), path.wires.end());
        found.bandwidth = bandwidth;
        found.type = joined(path.type, type);
        known = std::move(found);
        if (std::find(next.begin(), next.end(), wire.to) == next.end()) next.push_back(wire.to);
      }
    }
    level = std::move(next);
  }
  // Which GPU stands in between.
  for (const DeviceId gpu : system_.gpus) {
    Path& path = system_.at(gpu, base);
    if (path.type != PathType::kNvb) continue;
    const DeviceId middle = system_.wires[path.wires.front()].to;
    for (uint32_t g = 0; g < system_.gpus.size(); ++g) {
      if (system_.gpus[g] == middle) path.via = g;
    }
  }
}

void PathFinder::keep_direct() {
  for (size_t a = 0; a < system_.gpus.size(); ++a) {
    for (size_t b = 0; b < system_.gpus.size(); ++b) {
      system_.direct_paths_.push_back(system_.gpu_path(a, b));
    }
  }
  for (size_t g = 0; g < system_.gpus.size(); ++g) {
    for (size_t n = 0; n < system_.nets.size(); ++n) {
      system_.direct_to_net_.push_back(system_.to_net(g, n));
    }
  }
}

DeviceId PathFinder::processor_of(size_t gpu) const {
  DeviceId best = system_.cpus.front();
  size_t hops = SIZE_MAX;
  for (const DeviceId cpu : system_.cpus) {
    const Path& path = system_.path(system_.gpus[gpu], cpu);
    if (path.type == PathType::kDis || path.wires.size() >= hops) continue;
    hops = path.wires.size();
    best = cpu;
  }
  return best;
}

void PathFinder::by_way_of(DeviceId middle, DeviceId from, DeviceId to) {
  const Path& first = system_.path(from, middle);
  const Path& second = system_.path(middle, to);
  if (first.type == PathType::kDis || second.type == PathType::kDis) return;
  Path path;
  path.wires = first.wires;
  path.wires.insert(path.wires.end(), second.wires.begin(), second.wires.end());
  path.bandwidth = std::min(first.bandwidth, second.bandwidth);
  path.type = joined(first.type, second.type);
  if (system_.devices[middle].type == DeviceType::kGpu) {
    path.type = PathType::kPxn;
    for (uint32_t g = 0; g < system_.gpus.size(); ++g) {
      if (system_.gpus[g] == middle) path.via = g;
    }
  }
  system_.at(from, to) = std::move(path);
}

void PathFinder::without_peer_access() {
  for (size_t g = 0; g < system_.gpus.size(); ++g) {
    for (size_t p = 0; p < system_.gpus.size(); ++p) {
      if (p == g || system_.taken_for_peers(p, g)) continue;
      by_way_of(processor_of(g), system_.gpus[p], system_.gpus[g]);
    }
  }
}

void PathFinder::serve() {
  system_.choose_local_nets();
  for (size_t n = 0; n < system_.nets.size(); ++n) system_.nets[n].local_gpu = served_gpu(n);
}

// The first GPU that would choose this network device (§7.2).
uint32_t PathFinder::served_gpu(size_t net) const {
  const std::vector<uint32_t> near = system_.nearest_gpus(net);
  for (uint32_t channel = 0; channel < kMaxChannels; ++channel) {
    for (const uint32_t g : near) {
      if (system_.local_net(g, channel) == net) return g;
    }
  }
  return UINT32_MAX;
}

void PathFinder::through_neighbours() {
  const PathType farthest = settings_.pxn_c2c ? PathType::kP2c : PathType::kPxb;
  for (size_t n = 0; n < system_.nets.size(); ++n) {
    for (size_t g = 0; g < system_.gpus.size(); ++g) {
      const uint32_t local = system_.nets[n].local_gpu;
      if (settings_.pxn && local != UINT32_MAX && local != g) {
        const Path& theirs = system_.to_net(local, n);
        const Path& ours = system_.to_net(g, n);
        const bool beside =
            system_.gpu_path(local, g).type <= PathType::kNvl &&
            system_.devices[system_.gpus[local]].host == system_.devices[system_.gpus[g]].host;
        if (theirs.type <= farthest && beside &&
            (theirs.bandwidth > ours.bandwidth || ours.type > PathType::kPxn)) {
          by_way_of(system_.gpus[local], system_.gpus[g], system_.nets[n].device);
        }
      }
      if (system_.to_net(g, n).type < PathType::kPhb) without_gpu_direct(g, n);
    }
  }
}

void PathFinder::without_gpu_direct(size_t gpu, size_t net) {
  if (system_.gpu_direct(gpu, net)) return;
  const DeviceId cpu = processor_of(gpu);
  by_way_of(cpu, system_.nets[net].device, system_.gpus[gpu]);
  by_way_of(cpu, system_.gpus[gpu], system_.nets[net].device);
}

bool NodeSystem::near_enough(size_t a, size_t b) const {
  const Path& path = direct_paths_[a * gpus.size() + b];
  PathType level = settings_.p2p_level;
  if (!settings_.p2p_level_given) {
    const SystemDevice& cpu = devices[cpus.front()];
    if (cpu.arch == CpuArch::kX86 && cpu.vendor == CpuVendor::kAmd && gpus.size() <= 2) {
      level = PathType::kSys;
    }
  }
  return path.type <= level;
}

bool NodeSystem::peer_to_peer(size_t a, size_t b) const {
  if (!near_enough(a, b)) return false;
  const bool refused = refused_peer_[a] || refused_peer_[b];
  return !refused || direct_paths_[a * gpus.size() + b].type <= PathType::kNvb;
}

bool NodeSystem::taken_for_peers(size_t a, size_t b) const {
  return settings_.version < NcclVersion{2, 13, 0} ? near_enough(a, b) : peer_to_peer(a, b);
}

bool NodeSystem::gpu_direct(size_t gpu, size_t net) const {
  if (!nets[net].direct) return false;
  const Path& now = to_net(gpu, net);
  size_t owner = gpu;
  if (now.type == PathType::kPxn) owner = now.via;
  PathType distance = direct_to_net_[owner * nets.size() + net].type;
  if (distance == PathType::kP2c && settings_.gdr_c2c) distance = PathType::kC2c;
  return distance <= settings_.gdr_level;
}

bool NodeSystem::gpu_direct_send(size_t gpu, size_t net) const {
  if (!gpu_direct(gpu, net)) return false;
  if (settings_.gdr_read >= 0) return settings_.gdr_read == 1;
  if (devices[gpus[gpu]].compute_capability >= 80 || gpus.size() == 1) return true;
  for (size_t other = 0; other < gpus.size(); ++other) {
    if (other != gpu && gpu_path(gpu, other).type == PathType::kNvl) return true;
  }
  return false;
}

bool NodeSystem::network_faster(size_t a, size_t b) const {
  const float speed = gpu_path(a, b).bandwidth;
  const auto outside = [&](size_t gpu) {
    float best = 0;
    for (size_t n = 0; n < nets.size(); ++n) {
      const Path& path = direct_to_net_[gpu * nets.size() + n];
      if (path.type <= PathType::kPxb) best = std::max(best, path.bandwidth);
    }
    return best;
  };
  return outside(a) > speed && outside(b) > speed;
}

std::vector<uint32_t> NodeSystem::nearest_nets(size_t gpu) const {
  return nearest(nets.size(), [&](uint32_t n) -> const Path& { return to_net(gpu, n); });
}

std::vector<uint32_t> NodeSystem::nearest_gpus(size_t net) const {
  return nearest(gpus.size(), [&](uint32_t g) -> const Path& { return from_net(net, g); });
}

void NodeSystem::choose_local_nets() {
  local_nets_.assign(gpus.size(), {});
  for (size_t g = 0; g < gpus.size(); ++g) {
    LocalNets& of = local_nets_[g];
    of.near = nearest_nets(g);
    if (of.near.empty()) continue;
    const size_t sharing = std::max<size_t>(1, nearest_gpus(of.near.front()).size());
    size_t spread = (of.near.size() + sharing - 1) / sharing;
    if (settings_.nets_per_gpu < 0) spread = of.near.size();
    if (settings_.nets_per_gpu > 0) {
      spread = std::min(of.near.size(), static_cast<size_t>(settings_.nets_per_gpu));
    }
    of.spread = static_cast<uint32_t>(std::max<size_t>(1, spread));
    of.first = devices[gpus[g]].index;
    const auto count = static_cast<uint32_t>(of.near.size());
    if (power_of_two(count)) of.first = mirrored(of.first, count);
  }
}

}  // namespace rehearse::sim
