// SPDX-License-Identifier: Apache-2.0
#include "sim/nccl/search.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>
#include <tuple>

#include "sim/nccl/search_trial.hpp"

namespace rehearse::sim {
namespace {

// GPUs visited: of one try, of one try whose channels must be equal, of all.
constexpr int kBudget = 1 << 14;
constexpr int kBudgetEqual = 1 << 8;
constexpr int64_t kBudgetTotal = 1 << 19;
constexpr int kMaxNvlsHeads = 32;
constexpr int kMaxDirectHeads = 8;

PathType farther(PathType type) { return static_cast<PathType>(static_cast<int>(type) + 1); }

// Taking from a wire and giving back leaves it as it was.
bool decimal(const Wire& wire) {
  return std::round(wire.bandwidth * 1000) / 1000 == wire.bandwidth;
}

class Search {
 public:
  Search(const NodeSystem& system, const SearchRequest& request, const TopologySettings& settings)
      : system_(system),
        settings_(settings),
        trial_(system, request.collnet),
        gpus_(static_cast<int>(system.gpus.size())),
        cc_(system.lowest_capability()),
        speeds_(speed_classes(cc_, !system.nets.empty(), settings.version)) {
    best_.pattern = request.pattern;
    best_.min_channels = request.min_channels;
    best_.max_channels = request.max_channels;
    collnet_ = request.collnet;
    thorough_ = request.thorough || !std::all_of(system.wires.begin(), system.wires.end(), decimal);
  }

  SearchedGraph run() {
    if (!possible()) return {};
    bounds();
    distances();
    graph_ = best_;
    first_speed();
    for (;;) {
      attempt();
      const bool enough = left_ == -1 || static_cast<float>(best_.n_channels) * best_.inter >=
                                             system_.total_bandwidth;
      if (!enough && pass_ == 1 && relax()) continue;
      if (pass_ == 1) second_pass();
      if (!raise()) break;
    }
    if (best_.n_channels == 0 && !collnet_ && best_.pattern != GraphPattern::kNvls) in_order();
    return result();
  }

 private:
  [[nodiscard]] bool network() const { return !system_.nets.empty(); }

  [[nodiscard]] bool possible() const {
    return best_.pattern != GraphPattern::kNvls || (system_.nvswitch != kNoDevice && cc_ >= 90);
  }

  void bounds() {
    if (best_.pattern == GraphPattern::kNvls) {
      best_.max_channels = std::min(kMaxNvlsHeads, gpus_);
      // Inside one node every GPU is to pull its share.
      if (!network()) best_.min_channels = best_.max_channels;
    }
    if (best_.pattern == GraphPattern::kCollnetDirect) {
      best_.max_channels = std::min(kMaxDirectHeads, gpus_);
    }
    if (gpus_ == 1 && best_.pattern != GraphPattern::kRing) best_.pattern = GraphPattern::kTree;
    if (best_.pattern == GraphPattern::kRing && system_.split_nvlink && best_.max_channels >= 2) {
      best_.min_channels = std::max(best_.min_channels, 2);
    }
    best_.channels.resize(static_cast<size_t>(best_.max_channels));
    for (SearchedChannel& channel : best_.channels) channel.gpus.resize(system_.gpus.size());
    equal_first_ = best_.pattern != GraphPattern::kNvls;
    best_.same_channels = equal_first_;
    const bool choosable = best_.pattern == GraphPattern::kRing ||
                           best_.pattern == GraphPattern::kBalancedTree ||
                           best_.pattern == GraphPattern::kSplitTree;
    cross_nic_ = system_.nets.size() > 1 && choosable ? settings_.cross_nic : 0;
    best_.cross_nic = cross_nic_ == 1 ? 1 : 0;
  }

  void distances() {
    if (gpus_ > 1) {
      nearest_intra_ = PathType::kSys;
      farthest_intra_ = PathType::kLoc;
      for (size_t a = 0; a < system_.gpus.size(); ++a) {
        for (size_t b = 0; b < system_.gpus.size(); ++b) {
          if (a == b) continue;
          intra_types_.insert(system_.gpu_path(a, b).type);
          nearest_intra_ = std::min(nearest_intra_, system_.gpu_path(a, b).type);
          farthest_intra_ = std::max(farthest_intra_, system_.gpu_path(a, b).type);
        }
      }
    }
    if (network()) {
      nearest_inter_ = PathType::kSys;
      farthest_inter_ = PathType::kLoc;
      for (size_t g = 0; g < system_.gpus.size(); ++g) {
        for (size_t n = 0; n < system_.nets.size(); ++n) {
          inter_types_.insert(system_.to_net(g, n).type);
          inter_types_.insert(system_.from_net(n, g).type);
          nearest_inter_ = std::min(nearest_inter_, system_.to_net(g, n).type);
          farthest_inter_ = std::max(farthest_inter_, system_.to_net(g, n).type);
        }
      }
      farthest_intra_ = farthest_inter_;
    }
    best_.type_intra = nearest_intra_;
    best_.type_inter = nearest_inter_;
  }

  void set_speed(size_t index) {
    speed_ = index;
    graph_.intra = graph_.inter = speeds_[index];
  }

  void first_speed() {
    float total = system_.total_bandwidth;
    if (gpus_ > 1 && best_.pattern != GraphPattern::kRing) {
      total *= static_cast<float>(gpus_) / static_cast<float>(gpus_ - 1);
    }
    size_t i = 0;
    while (i + 1 < speeds_.size() &&
           (speeds_[i] > system_.max_bandwidth ||
            speeds_[i] * static_cast<float>(best_.min_channels) > total)) {
      ++i;
    }
    set_speed(i);
  }

  // The farthest distance there is that is not beyond `limit`: a weaker demand that allows no further
  // path gives what the demand before it gave.
  static PathType reached(const std::set<PathType>& present, PathType limit) {
    const auto after = present.upper_bound(limit);
    return after == present.begin() ? PathType::kLoc : *std::prev(after);
  }

  // What a try was asked for: pattern, cross NIC, equal channels, speed (the lower the faster), distances.
  using Demand = std::tuple<GraphPattern, int, bool, size_t, PathType, PathType>;

  void attempt() {
    const int budget = graph_.same_channels ? kBudgetEqual : kBudget;
    total_ -= budget;
    const Demand demand = {graph_.pattern,
                           graph_.cross_nic,
                           graph_.same_channels,
                           speed_,
                           reached(intra_types_, graph_.type_intra),
                           reached(inter_types_, graph_.type_inter)};
    if (const auto known = tried_.find(demand); pass_ == 1 && known != tried_.end()) {
      left_ = known->second;
      return;
    }
    if (pass_ == 1 && !thorough_ && cannot_be_better() && will_exhaust(demand)) {
      left_ = 0;
      return;
    }
    left_ = trial_.run(graph_, best_, budget);
    visits_ += static_cast<uint64_t>(budget - std::max(0, left_));
    tried_[demand] = left_;
  }

  // Every channel that starts takes its speed from a network device, so there are not many.
  [[nodiscard]] bool cannot_be_better() const {
    if (graph_.pattern == GraphPattern::kNvls || graph_.pattern == GraphPattern::kCollnetDirect ||
        best_.n_channels == 0) {
      return false;
    }
    auto most = static_cast<float>(graph_.max_channels);
    if (const auto each = static_cast<float>(static_cast<int>(graph_.inter));
        network() && each > 0) {
      float by_nets = 0;
      for (const SystemNet& net : system_.nets) by_nets += std::floor(net.bandwidth / each);
      most = std::min(most, by_nets);
    }
    const float reach = most * graph_.intra;
    const float have = static_cast<float>(best_.n_channels) * best_.intra;
    // As fast is better only with fewer hops, and hops are compared among the like.
    return reach < have || (reach == have && (graph_.pattern != best_.pattern ||
                                              graph_.cross_nic != best_.cross_nic));
  }

  // A try at a higher speed over shorter distances visits a part of what this one does: if that was more than the
  // budget, this is too.
  [[nodiscard]] bool will_exhaust(const Demand& demand) const {
    return std::any_of(tried_.begin(), tried_.end(), [&](const auto& entry) {
      const auto& [pattern, cross_nic, equal, speed, intra, inter] = entry.first;
      return entry.second == 0 && pattern == std::get<0>(demand) &&
             cross_nic == std::get<1>(demand) && equal == std::get<2>(demand) &&
             speed <= std::get<3>(demand) && intra <= std::get<4>(demand) &&
             inter <= std::get<5>(demand);
    });
  }

  // The next weaker demand; false when the search is over.
  bool relax() {
    const bool through_amd = system_.devices[system_.cpus.front()].arch == CpuArch::kX86 &&
                             system_.devices[system_.cpus.front()].vendor == CpuVendor::kAmd &&
                             graph_.type_intra == PathType::kSys;
    if (graph_.same_channels && !through_amd) {
      graph_.same_channels = false;
      return true;
    }
    graph_.same_channels = equal_first_;
    total_ += left_;
    if (total_ < 0 && best_.n_channels > 0) return false;
    if (cc_ >= 90 && graph_.pattern == GraphPattern::kBalancedTree) {
      graph_.pattern = GraphPattern::kTree;
      return true;
    }
    graph_.pattern = best_.pattern;
    const bool none = best_.n_channels == 0;
    const PathType limit = network() ? graph_.type_inter : farthest_intra_;
    if (graph_.type_intra < limit && (none || graph_.type_intra < best_.type_intra)) {
      graph_.type_intra = farther(graph_.type_intra);
      if (graph_.type_intra < PathType::kDis) return true;
    }
    graph_.type_intra = nearest_intra_;
    if (network() && graph_.type_inter < farthest_inter_ &&
        (none || graph_.type_inter < best_.type_inter || graph_.type_inter < PathType::kPxn)) {
      graph_.type_inter = farther(graph_.type_inter);
      if (graph_.type_inter < PathType::kDis) return true;
    }
    graph_.type_inter = nearest_inter_;
    if (cross_nic_ == 2 && graph_.cross_nic == 0 &&
        (best_.pattern == GraphPattern::kRing || best_.pattern == GraphPattern::kBalancedTree)) {
      graph_.cross_nic = 2;
      return true;
    }
    graph_.cross_nic = cross_nic_ == 1 ? 1 : 0;
    if (speed_ + 1 < speeds_.size() && (none || speeds_[speed_ + 1] / best_.inter > .49F)) {
      set_speed(speed_ + 1);
      return true;
    }
    return false;
  }

  // Fast channels are better as twice as many of half the speed.
  void duplicate() {
    if (best_.n_channels == 0 || best_.pattern == GraphPattern::kNvls || best_.intra < 25) return;
    if (cc_ > 80 && best_.intra < 50 && best_.n_channels > 4) return;
    const int wanted = std::min(best_.n_channels * 2, best_.max_channels);
    for (int c = best_.n_channels; c < wanted; ++c) {
      best_.channels[static_cast<size_t>(c)] =
          best_.channels[static_cast<size_t>(c - best_.n_channels)];
    }
    const int each = (wanted + best_.n_channels - 1) / best_.n_channels;
    const auto parts = static_cast<float>(each);
    best_.intra /= parts;
    best_.inter /= parts;
    best_.n_channels = wanted;
  }

  void second_pass() {
    pass_ = 2;
    left_ = -1;
    duplicate();
    graph_ = best_;
    size_t i = 0;
    while (i + 1 < speeds_.size() && speeds_[i] > best_.inter) ++i;
    set_speed(i);
    graph_.min_channels = best_.n_channels;
  }

  // The next higher speed with the channels found; false when there is none to try.
  bool raise() {
    if (left_ == 0 || speed_ == 0) return false;
    if (best_.pattern == GraphPattern::kRing) {
      set_speed(speed_ - 1);
      return true;
    }
    if (best_.pattern == GraphPattern::kNvls && graph_.inter == best_.inter &&
        graph_.inter < graph_.intra * 2) {
      graph_.min_channels = graph_.max_channels = best_.n_channels;
      graph_.inter = speeds_[--speed_];
      return true;
    }
    if (graph_.intra == best_.intra && graph_.intra < graph_.inter * 2) {
      graph_.intra = speeds_[--speed_];
      return true;
    }
    return false;
  }

  void in_order() {
    best_.n_channels = 1;
    best_.intra = best_.inter = 0.1F;
    best_.type_intra = best_.type_inter = PathType::kSys;
    best_.channels.resize(1);
    best_.channels[0] = {};
    for (uint32_t g = 0; g < system_.gpus.size(); ++g) best_.channels[0].gpus.push_back(g);
  }

  SearchedGraph result() {
    SearchedGraph out;
    out.visits = visits_;
    out.pattern = best_.pattern;
    out.cross_nic = best_.cross_nic;
    out.intra = best_.intra;
    out.inter = best_.inter;
    out.type_intra = best_.type_intra;
    out.type_inter = best_.type_inter;
    out.same_channels = best_.same_channels;
    best_.channels.resize(static_cast<size_t>(best_.n_channels));
    out.channels = std::move(best_.channels);
    if (out.pattern == GraphPattern::kNvls) {
      for (SearchedChannel& channel : out.channels) channel.gpus.resize(1);
    }
    return out;
  }

  const NodeSystem& system_;
  const TopologySettings& settings_;
  SearchTrial trial_;
  std::set<PathType> intra_types_, inter_types_;  // that paths have
  std::map<Demand, int> tried_;                   // and what was left of the budget
  int gpus_;
  int cc_;
  std::span<const float> speeds_;
  bool collnet_ = false;
  bool thorough_ = false;
  uint64_t visits_ = 0;
  TrialGraph best_, graph_;
  PathType nearest_intra_ = PathType::kLoc, farthest_intra_ = PathType::kSys;
  PathType nearest_inter_ = PathType::kPix, farthest_inter_ = PathType::kSys;
  bool equal_first_ = true;
  int cross_nic_ = 0;
  int pass_ = 1;
  size_t speed_ = 0;
  int left_ = 0;
  int64_t total_ = kBudgetTotal;
};

}  // namespace

SearchedGraph search_graph(const NodeSystem& system, const SearchRequest& request,
                           const TopologySettings& settings) {
  return Search(system, request, settings).run();
}

}  // namespace rehearse::sim
