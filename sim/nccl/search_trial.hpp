// SPDX-License-Identifier: Apache-2.0
// One try of the graph search at one speed and distance: walks channels through the node, taking
// bandwidth from wires as it goes, and keeps the best it saw. Private to sim/nccl; search.cpp decides
// what is tried.
#pragma once

#include <span>
#include <vector>

#include "sim/nccl/search.hpp"

namespace rehearse::sim {

// A graph under construction: what search_graph returns and what the search compares by.
struct TrialGraph {
  GraphPattern pattern = GraphPattern::kRing;
  int cross_nic = 0;
  float intra = 0, inter = 0;
  PathType type_intra = PathType::kLoc, type_inter = PathType::kPix;
  bool same_channels = true;
  int hops = 0;
  int n_channels = 0;
  int min_channels = 1, max_channels = 1;
  std::vector<SearchedChannel> channels;  // max_channels of them; the first n_channels count
};

class SearchTrial {
 public:
  SearchTrial(const NodeSystem& system, bool collnet);

  // Improves `best` with what `graph`'s speeds and distances allow. Returns what is left of `budget`;
  // -1 when nothing better is possible.
  int run(TrialGraph& graph, TrialGraph& best, int budget);

 private:
  enum class Order { kSearch, kPci, kReplay };
  struct Where {
    int step = 0;
    int back_to_net = -1;    // after this many GPUs the channel goes to the network
    int back_to_first = -1;  // after this many it returns to its first GPU
    Order order = Order::kSearch;
  };
  struct Place {
    DeviceId device = kNoDevice;  // kNoDevice: a channel starts here
    bool inside = false;          // GPU or NVSwitch
  };

  // A path as it is walked thousands of times: what each wire gives is worked out once.
  struct Step {
    uint32_t wire = 0;
    uint32_t back = UINT32_MAX;          // the wire the other way, where that gives too:
    bool eighth = false, whole = false;  // of what `wire` gives
    bool dear = false;                   // peer traffic through an Intel root complex
  };
  struct Way {
    uint32_t first = 0, count = 0;  // in steps_
    PathType type = PathType::kDis;
  };
  void survey(DeviceId from, DeviceId to);
  [[nodiscard]] const Way& way(DeviceId from, DeviceId to) const {
    return ways_[static_cast<size_t>(from) * system_.devices.size() + to];
  }

  void start();
  void start_from_net(int back_to_net, int back_to_first);
  void try_gpu(Place from, uint32_t gpu, const Where& where);
  void at_gpu(uint32_t gpu, const Where& where);
  void finish_channel();
  void leave_to_net(uint32_t gpu, const Where& where);
  void next_gpus(uint32_t gpu, const Where& where);
  void nvls(uint32_t head, const Where& where);
  void collnet_direct(uint32_t head, const Where& where);
  // Takes (or gives back, factor < 0) bandwidth from `from` to `to`; false when there is none.
  bool follow(Place from, Place to, float factor);
  size_t reserve(std::span<const Step> steps, float bandwidth);
  [[nodiscard]] bool is_better() const;
  // Which GPUs to try after this one, appended to order_.
  void add_order(uint32_t gpu, const Where& where);
  void add_neighbours(uint32_t gpu);
  // The network devices to try, of one GPU or (-1) of all.
  [[nodiscard]] const std::vector<uint32_t>& nets_for(PathType farthest, int gpu);
  void find_nets(PathType farthest, int gpu, std::vector<uint32_t>& nets) const;
  [[nodiscard]] int pci_bandwidth(uint32_t gpu) const;
  [[nodiscard]] Place gpu_place(uint32_t gpu) const { return {system_.gpus[gpu], true}; }
  [[nodiscard]] Place net_place(uint32_t net) const { return {system_.nets[net].device, false}; }
  [[nodiscard]] SearchedChannel& channel() {
    return graph_->channels[static_cast<size_t>(graph_->n_channels)];
  }
  [[nodiscard]] const SearchedChannel& last_channel() const {
    return graph_->channels[static_cast<size_t>(graph_->n_channels) - 1];
  }

  const NodeSystem& system_;
  bool collnet_;
  TrialGraph* graph_ = nullptr;
  TrialGraph* best_ = nullptr;
  int time_ = 0;
  std::vector<float> left_;      // of each wire
  std::vector<float> net_left_;  // of each network device
  std::vector<uint64_t> used_;   // per GPU: the channels it is on
  std::vector<Way> ways_;        // by pair of devices
  std::vector<Step> steps_;
  std::vector<uint32_t> order_;  // a stack: each GPU of the walk pushes those to try after it
  struct Nets {
    bool found = false;
    std::vector<uint32_t> nets;
  };
  std::vector<Nets> nets_;                        // by distance and GPU
  std::vector<std::vector<uint32_t>> near_gpus_;  // by network device
};

}  // namespace rehearse::sim
