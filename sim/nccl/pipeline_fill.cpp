// SPDX-License-Identifier: Apache-2.0
#include "sim/nccl/pipeline_fill.hpp"

#include <algorithm>
#include <unordered_map>

#include "sim/efficiency.hpp"
#include "sim/nccl/loads.hpp"

namespace rehearse::sim {
namespace {

// A way through the pipeline: time of one chunk, and on its slowest edge.
struct Passage {
  double sum = 0, most = 0;
  void add(double seconds) {
    sum += seconds;
    most = std::max(most, seconds);
  }
};

class Filler {
 public:
  Filler(const ModelContext& context, const Placement& placement, const Graphs& graphs,
         const Pipeline& pipeline)
      : context_(context),
        placement_(placement),
        graphs_(graphs),
        pipeline_(pipeline),
        loads_(context, placement, graphs, pipeline.queues) {
    for (const LinkWeight& use : pipeline.flow.links) weight_[use.link] += use.weight;
  }

  // Along the ring of the first channel from the root on, or towards it.
  [[nodiscard]] double chain() const {
    const std::vector<Loads::Edge> ring = loads_.ring_edges(0);
    Passage way;
    const bool reduce = pipeline_.function == Function::kReduce;
    for (const Loads::Edge& edge : ring) {
      // The edge that would close the ring carries nothing.
      if ((reduce ? edge.from : edge.to) != pipeline_.root) way.add(seconds(edge));
    }
    return way.sum - way.most;
  }

  // From the leaf that is farthest from the root up, and down to the farthest; the worse of both trees.
  [[nodiscard]] double tree(bool nodes_only) const {
    // Channels of the first tree come first.
    const auto second = static_cast<int>(graphs_.trees.size());
    return std::max(one_tree(0, nodes_only), one_tree(second, nodes_only));
  }

 private:
  [[nodiscard]] double seconds(const Loads::Edge& edge) const {
    double slowest = pipeline_.flow.cap > 0 ? 1 / pipeline_.flow.cap : 0;
    for (const LinkWeight& use : edge.links) {
      const double capacity = effective_capacity(context_.platform, context_.links[use.link]);
      const auto at = weight_.find(use.link);
      if (capacity > 0 && at != weight_.end()) slowest = std::max(slowest, at->second / capacity);
    }
    return slowest * pipeline_.chunk;
  }

  [[nodiscard]] uint32_t place_of(uint32_t member, bool nodes_only) const {
    return nodes_only ? placement_.members[member].group : member;
  }

  // Edges come in pairs, up and down.
  [[nodiscard]] double one_tree(int channel, bool nodes_only) const {
    const std::vector<Loads::Edge> edges = loads_.tree_edges(channel, nodes_only);
    struct Parent {
      uint32_t place;
      double up, down;
    };
    std::unordered_map<uint32_t, Parent> parents;
    std::vector<uint32_t> places;
    for (size_t e = 0; e + 1 < edges.size(); e += 2) {
      const uint32_t child = place_of(edges[e].from, nodes_only);
      parents[child] = {place_of(edges[e].to, nodes_only), seconds(edges[e]),
                        seconds(edges[e + 1])};
      places.push_back(child);
    }
    Passage up, down;
    for (uint32_t leaf : places) {
      Passage to, from;
      size_t hops = 0;
      for (auto at = parents.find(leaf); at != parents.end() && hops++ < edges.size();
           at = parents.find(at->second.place)) {
        to.add(at->second.up);
        from.add(at->second.down);
      }
      if (to.sum > up.sum) up = to;
      if (from.sum > down.sum) down = from;
    }
    return up.sum + down.sum - std::max(up.most, down.most);
  }

  const ModelContext& context_;
  const Placement& placement_;
  const Graphs& graphs_;
  const Pipeline& pipeline_;
  Loads loads_;
  std::unordered_map<LinkId, double> weight_;
};

}  // namespace

LatencyPart pipeline_fill(const ModelContext& context, const Placement& placement,
                          const Graphs& graphs, const Pipeline& pipeline) {
  LatencyPart part{"until the pipeline of chunks is full", 0, 0};
  const Filler filler(context, placement, graphs, pipeline);
  double fill = 0;
  switch (pipeline.algorithm) {
    case Algorithm::kTree:
      fill = filler.tree(false);
      break;
    case Algorithm::kNvlsTree:
      fill = filler.tree(true);
      break;
    case Algorithm::kRing:
      if (pipeline.function == Function::kBroadcast || pipeline.function == Function::kReduce) {
        fill = filler.chain();
      }
      break;
    default:
      break;
  }
  if (!(fill > 0)) return part;
  part.count = 1;
  part.each_us = fill * 1e6;
  return part;
}

}  // namespace rehearse::sim
