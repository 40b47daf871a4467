// SPDX-License-Identifier: Apache-2.0
#include "sim/nccl/graphs.hpp"

#include <algorithm>
#include <array>
#include <span>

#include "sim/nccl/environment.hpp"

namespace rehearse::sim {
namespace {

using platforms::Links;

// Speed classes in GB/s that the search tries (NCCL 2.28.9, §7.3).
constexpr double kIntra[] = {40, 30, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3};
constexpr double kIntraHopper[] = {60, 50, 40, 30, 24, 20, 15, 12, 11, 6, 3};
constexpr double kIntraBlackwell[] = {90, 80, 70, 60, 50, 40, 30, 24, 20, 19, 18};
constexpr double kInter[] = {48, 30, 28, 24, 20, 18,  15,  12,  10, 9,
                             7,  6,  5,  4,  3,  2.4, 1.2, .24, .12};
constexpr double kInterHopper[] = {48, 45, 42, 40, 30,  24,  22,  20, 17.5,
                                   15, 12, 6,  3,  2.4, 1.2, .24, .12};
constexpr double kInterBlackwell[] = {96,   48, 45.1, 42, 40, 30,  24,  22,  20,
                                      17.5, 15, 12,   6,  3,  2.4, 1.2, .24, .12};

std::span<const double> speeds(int cc, bool network) {
  if (cc >= 100) return network ? std::span<const double>(kInterBlackwell) : kIntraBlackwell;
  if (cc >= 90) return network ? std::span<const double>(kInterHopper) : kIntraHopper;
  return network ? std::span<const double>(kInter) : kIntra;
}

// GB/s of one NVLink as NCCL counts it (§7.1).
double nvlink_speed(int cc) {
  if (cc >= 100) return 40.1;
  if (cc >= 90) return 20.6;
  if (cc == 86) return 12;
  return cc >= 70 ? 20 : 18;
}

// GB/s of a PCIe link as NCCL counts it: Gen3 x16 is 12, Gen4 24, Gen5 48.
double pcie_speed(const pb::PcieLink& link) {
  static constexpr std::array<double, 8> kSpeed = {60, 15, 30, 60, 120, 240, 480, 960};
  const double s = kSpeed[std::min<size_t>(link.generation(), 7)];
  return (link.width() == 0 ? 16 : link.width()) * s / 80;
}

struct Budget {
  double local = 0;    // GB/s out of one GPU towards its neighbours
  double port = 0;     // GB/s of one way from GPU to network; 0 on one node
  uint32_t ports = 0;  // such ways per node
};

struct Found {
  int channels = 1;
  double speed = 0.1;
};

// Channels at a speed: every GPU but the one that leaves the node sends on NVLink or PCIe.
int channels_at(double speed, const Budget& budget, size_t gpus) {
  double n = 32;
  if (gpus > 1) {
    const double share =
        budget.ports > 0 ? static_cast<double>(gpus - 1) / static_cast<double>(gpus) : 1;
    n = std::min(n, budget.local / (speed * share) + 1e-6);
  }
  if (budget.ports > 0) {
    n = std::min(n,
                 static_cast<double>(budget.ports) * static_cast<int>(budget.port / speed + 1e-6));
  }
  return static_cast<int>(n);
}

Found search(int cc, const Budget& budget, size_t gpus) {
  Found best;
  double total = 0;
  const double limit = budget.ports > 0 ? budget.port : budget.local;
  for (double speed : speeds(cc, budget.ports > 0)) {
    if (speed > limit + 1e-6) continue;
    if (total > 0 && speed / best.speed <= .49) break;
    const int n = channels_at(speed, budget, gpus);
    if (n >= 1 && n * speed > total + 1e-6) {
      total = n * speed;
      best = {n, speed};
    }
    if (total >= budget.local && gpus > 1) break;
  }
  const bool spared = cc > 80 && best.speed < 50 && best.channels > 4;
  if (best.speed >= 25 && !spared && best.channels * 2 <= 32) {
    best.channels *= 2;
    best.speed /= 2;
  }
  return best;
}

class Building {
 public:
  Building(const ModelContext& context, const Placement& placement)
      : context_(context), placement_(placement), env_(placement.members.front().env) {}

  Result<Graphs> run() {
    fill_machine();
    const size_t gpus = static_cast<size_t>(out_.shape.ranks_per_node);
    const Found found = search(out_.shape.cc_min, budget(), gpus);
    GraphInfo& ring = out_.shape.ring;
    ring.n_channels = found.channels;
    ring.bw_intra = ring.bw_inter = found.speed;
    ring.type_intra = intra_type();
    ring.type_inter = inter_type();
    ring.same_channels = true;
    if (placement_.inter == InterTransport::kSocket) ring.latency_inter_us = kSocketLatencyUs;
    out_.shape.tree = ring;
    out_.shape.tree_pattern_max = gpus > 1 ? GraphPattern::kBalancedTree : GraphPattern::kTree;
    fill_nvls(gpus);
    count_channels();
    for (int c = 0; c < found.channels; ++c) out_.rings.push_back(paths(static_cast<uint32_t>(c)));
    return std::move(out_);
  }

 private:
  // A TCP round trip costs tens of microseconds more than RDMA; a typical figure, not a
  // measurement.
  static constexpr double kSocketLatencyUs = 20;

  [[nodiscard]] const pb::Node& node(size_t group) const {
    return context_.platform.nodes(static_cast<int>(placement_.groups[group].node));
  }
  [[nodiscard]] const pb::Gpu& gpu(uint32_t member) const {
    const GpuRef at = placement_.members[member].gpu;
    return context_.platform.nodes(static_cast<int>(at.node)).gpus(static_cast<int>(at.gpu));
  }

  void fill_machine() {
    CommShape& shape = out_.shape;
    shape.n_nodes = static_cast<int>(placement_.groups.size());
    shape.n_ranks = static_cast<int>(placement_.members.size());
    shape.cc_min = 1000;
    shape.cc_max = 0;
    for (uint32_t m = 0; m < placement_.members.size(); ++m) {
      const int cc = std::max(70, static_cast<int>(gpu(m).compute_capability()));
      shape.cc_min = std::min(shape.cc_min, cc);
      shape.cc_max = std::max(shape.cc_max, cc);
    }
    size_t fullest = 0;
    for (const LocalGroup& group : placement_.groups)
      fullest = std::max(fullest, group.members.size());
    shape.ranks_per_node = static_cast<int>(fullest);
    const pb::Node& first = node(0);
    if (first.numa_size() > 0) {
      const std::string& arch = first.numa(0).arch();
      const std::string& vendor = first.numa(0).vendor();
      shape.cpu_arch = arch == "arm"     ? CpuArch::kArm
                       : arch == "power" ? CpuArch::kPower
                                         : CpuArch::kX86;
      shape.cpu_vendor = vendor == "amd"       ? CpuVendor::kAmd
                         : vendor == "zhaoxin" ? CpuVendor::kZhaoxin
                                               : CpuVendor::kIntel;
    }
    shape.nvswitch = first.nvswitch().count() > 0;
  }

  // What the weakest node offers.
  [[nodiscard]] Budget budget() const {
    Budget budget{1e9, 1e9, UINT32_MAX};
    for (size_t g = 0; g < placement_.groups.size(); ++g) {
      const LocalGroup& group = placement_.groups[g];
      for (uint32_t m : group.members) {
        const pb::Gpu& device = gpu(m);
        const double pcie = pcie_speed(device.pcie());
        const bool nvlink =
            placement_.intra == IntraTransport::kNvlink && device.nvlink().links() > 0;
        budget.local =
            std::min(budget.local,
                     nvlink ? device.nvlink().links() * nvlink_speed(out_.shape.cc_min) : pcie);
      }
      if (placement_.groups.size() == 1 || placement_.inter == InterTransport::kNvlink) {
        budget.ports = 0;
        continue;
      }
      if (placement_.inter == InterTransport::kSocket) {
        const double rate = node(g).interfaces(static_cast<int>(group.interface)).bandwidth() / 1e9;
        budget.port = std::min(budget.port, std::max(rate, 0.12));
        budget.ports = 1;
        continue;
      }
      budget.ports = std::min(budget.ports, static_cast<uint32_t>(group.nics.size()));
      for (uint32_t n : group.nics) {
        const pb::Nic& nic = node(g).nics(static_cast<int>(n));
        budget.port = std::min({budget.port, nic.bandwidth() / 1e9, pcie_speed(nic.pcie()),
                                pcie_speed(gpu(group.members.front()).pcie())});
      }
    }
    return budget;
  }

  [[nodiscard]] PathType intra_type() const {
    if (placement_.intra == IntraTransport::kNvlink) return PathType::kNvl;
    return placement_.intra == IntraTransport::kPcie ? PathType::kPxb : PathType::kSys;
  }

  [[nodiscard]] PathType inter_type() const {
    if (placement_.inter == InterTransport::kSocket) return PathType::kPhb;
    if (placement_.inter != InterTransport::kRdmaDirect) return PathType::kPhb;
    const LocalGroup& group = placement_.groups.front();
    const auto distance =
        context_.links.distance(placement_.members[group.members.front()].gpu, group.nics.front());
    return distance == Links::Distance::kPix ? PathType::kPix : PathType::kPxb;
  }

  void fill_nvls(size_t gpus) {
    CommShape& shape = out_.shape;
    const bool sharp = node(0).nvswitch().sharp() && shape.nvswitch && shape.cc_min >= 90;
    if (!sharp || gpus < 2 || placement_.intra != IntraTransport::kNvlink) return;
    if (whole_number(env_, "NCCL_NVLS_ENABLE", 2) == 0) return;
    shape.nvls_support = true;
    shape.nvls_channels = shape.cc_min >= 100 ? (shape.n_nodes > 1 ? 32 : 24) : 16;
    shape.nvls_heads = static_cast<int>(gpus);
    shape.nvls = shape.ring;
    shape.nvls.n_channels = static_cast<int>(gpus);
    const double local = gpu(0).nvlink().links() * nvlink_speed(shape.cc_min);
    shape.nvls.bw_intra = local / static_cast<double>(gpus);
    if (shape.n_nodes == 1) shape.nvls.bw_inter = shape.nvls.bw_intra;
  }

  // §7.4.
  void count_channels() {
    CommShape& shape = out_.shape;
    int n = std::min(64, shape.ring.n_channels * 2);
    if (shape.cc_min >= 90 && shape.n_nodes > 1 && shape.ring.bw_intra > 45 && n < 16) n *= 2;
    const int most =
        whole_number(env_, "NCCL_MAX_NCHANNELS", whole_number(env_, "NCCL_MAX_CTAS", 64));
    const int least =
        whole_number(env_, "NCCL_MIN_NCHANNELS", whole_number(env_, "NCCL_MIN_CTAS", 1));
    n = std::clamp(std::min(n, std::max(1, most)), 1, 64);
    shape.n_channels = std::clamp(std::max(n, least), 1, 64);
  }

  // GPUs of a node nearest to the channel's NIC come first and last.
  [[nodiscard]] std::vector<NodePath> paths(uint32_t channel) const {
    std::vector<NodePath> out;
    for (size_t g = 0; g < placement_.groups.size(); ++g) {
      const LocalGroup& group = placement_.groups[g];
      NodePath path;
      if (placement_.groups.size() == 1 || group.nics.empty()) {
        path.members = walk(group.members);
      } else {
        path.nic = group.nics[channel % group.nics.size()];
        std::vector<uint32_t> order = group.members;
        std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
          return context_.links.distance(placement_.members[a].gpu, path.nic) <
                 context_.links.distance(placement_.members[b].gpu, path.nic);
        });
        // Two channels whose NICs are as near to the same GPUs take turns in who receives.
        const size_t turn = channel % 2;
        if (order.size() > 1 && turn == 1) std::swap(order[0], order[1]);
        if (order.size() > 2) std::rotate(order.begin() + 1, order.begin() + 2, order.end());
        path.members = std::move(order);
      }
      out.push_back(std::move(path));
    }
    return out;
  }

  // An order in which neighbours are joined by NVLink, where there is no switch; else as they are.
  [[nodiscard]] std::vector<uint32_t> walk(const std::vector<uint32_t>& members) const {
    if (placement_.intra != IntraTransport::kNvlink || out_.shape.nvswitch || members.size() < 3) {
      return members;
    }
    std::vector<uint32_t> path = {members.front()};
    std::vector<uint32_t> best = members;
    int budget = 1 << 14;  // NCCL's own bound on visits
    if (extend(members, path, budget)) best = path;
    return best;
  }

  bool extend(const std::vector<uint32_t>& members, std::vector<uint32_t>& path,
              int& budget) const {
    if (--budget < 0) return false;
    if (path.size() == members.size()) return linked(path.back(), path.front());
    for (uint32_t next : members) {
      if (std::find(path.begin(), path.end(), next) != path.end() || !linked(path.back(), next))
        continue;
      path.push_back(next);
      if (extend(members, path, budget)) return true;
      path.pop_back();
    }
    return false;
  }

  [[nodiscard]] bool linked(uint32_t a, uint32_t b) const {
    std::vector<platforms::LinkId> route;
    return context_.links.nvlink(placement_.members[a].gpu, placement_.members[b].gpu, route);
  }

  const ModelContext& context_;
  const Placement& placement_;
  const std::map<std::string, std::string>& env_;
  Graphs out_;
};

}  // namespace

Result<Graphs> build_graphs(const ModelContext& context, const Placement& placement) {
  return Building(context, placement).run();
}

TreeNode binary_tree(int node, int n, int which) {
  // The second tree is the first over other names: mirrored for an even number of nodes, shifted
  // for an odd one, so that no node is inner in both.
  const auto rename = [&](int x) {
    if (x < 0 || which == 0) return x;
    return n % 2 == 0 ? n - 1 - x : (x + 1) % n;
  };
  const int x = which == 0 ? node : n % 2 == 0 ? n - 1 - node : (node - 1 + n) % n;
  TreeNode out;
  int bit = 1;
  while (bit < n && (bit & x) == 0) bit <<= 1;
  if (x == 0) {
    out.down[1] = n > 1 ? bit >> 1 : -1;
  } else {
    out.up = (x ^ bit) | (bit << 1);
    if (out.up >= n) out.up = x ^ bit;
    int low = bit >> 1;
    out.down[0] = low == 0 ? -1 : x - low;
    out.down[1] = low == 0 ? -1 : x + low;
    while (out.down[1] >= n) {
      out.down[1] = low == 0 ? -1 : x + low;
      low >>= 1;
    }
  }
  out.up = rename(out.up);
  out.down[0] = rename(out.down[0]);
  out.down[1] = rename(out.down[1]);
  return out;
}

}  // namespace rehearse::sim
