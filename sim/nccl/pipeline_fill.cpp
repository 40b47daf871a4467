// SPDX-License-Identifier: Apache-2.0
#include "sim/nccl/pipeline_fill.hpp"

#include <algorithm>
#include <unordered_map>

#include "sim/efficiency.hpp"
#include "sim/nccl/loads.hpp"

namespace rehearse::sim {
namespace {

using Weights = std::unordered_map<LinkId, double>;

class Filler {
 public:
  Filler(const ModelContext& context, const Placement& placement, const Graphs& graphs,
         const Pipeline& pipeline)
      : context_(context),
        graphs_(graphs),
        pipeline_(pipeline),
        loads_(context, placement, graphs, pipeline.queues) {
    for (const LinkWeight& use : pipeline.flow.links) all_[use.link] += use.weight;
  }

  // Along the ring of the first channel from the root on, or towards it.
  [[nodiscard]] double chain() const {
    double sum = 0;
    const bool reduce = pipeline_.function == Function::kReduce;
    for (const Loads::Edge& edge : loads_.ring_edges(0)) {
      // The edge that would close the ring carries nothing.
      if ((reduce ? edge.from : edge.to) != pipeline_.root) sum += seconds(edge, all_);
    }
    return sum - later();
  }

  // From the leaf that is farthest from the root up, and down to the farthest; the worse of both trees.
  [[nodiscard]] double tree(bool nodes_only) const {
    Weights up, down;
    std::vector<std::vector<Loads::Edge>> trees;
    for (int c = 0; c < pipeline_.channels; ++c) {
      trees.push_back(loads_.tree_edges(c, nodes_only));
      for (size_t e = 0; e < trees.back().size(); ++e) {
        Weights& way = e % 2 == 0 ? up : down;
        for (const LinkWeight& use : trees.back()[e].links) way[use.link] += use.weight;
      }
    }
    double longest = 0;
    for (const auto& edges : trees) {
      longest = std::max(longest, one_tree(edges, up, down));
    }
    return longest - later();
  }

 private:
  [[nodiscard]] double seconds(const Loads::Edge& edge, const Weights& beside) const {
    double slowest = pipeline_.flow.cap > 0 ? 1 / pipeline_.flow.cap : 0;
    for (const LinkWeight& use : edge.links) {
      const double capacity = effective_capacity(context_.platform, context_.links[use.link]);
      const auto at = beside.find(use.link);
      if (capacity > 0 && at != beside.end()) slowest = std::max(slowest, at->second / capacity);
    }
    return slowest * pipeline_.part;
  }

  // A part once all channels run.
  [[nodiscard]] double later() const {
    const double rate = rate_alone(context_, pipeline_.flow);
    return rate > 0 ? pipeline_.part / rate : 0;
  }

  // Edges come in pairs, up and down.
  [[nodiscard]] double one_tree(const std::vector<Loads::Edge>& edges, const Weights& up,
                                const Weights& down) const {
    struct Parent {
      uint32_t place;
      double up, down;
    };
    std::unordered_map<uint32_t, Parent> parents;
    std::vector<uint32_t> places;
    for (size_t e = 0; e + 1 < edges.size(); e += 2) {
      const uint32_t child = edges[e].from;
      parents[child] = {edges[e].to, seconds(edges[e], up), seconds(edges[e + 1], down)};
      places.push_back(child);
    }
    double longest_up = 0, longest_down = 0;
    for (uint32_t leaf : places) {
      double to = 0, from = 0;
      size_t hops = 0;
      for (auto at = parents.find(leaf); at != parents.end() && hops++ < edges.size();
           at = parents.find(at->second.place)) {
        to += at->second.up;
        from += at->second.down;
      }
      longest_up = std::max(longest_up, to);
      longest_down = std::max(longest_down, from);
    }
    return longest_up + longest_down;
  }

  const ModelContext& context_;
  const Graphs& graphs_;
  const Pipeline& pipeline_;
  Loads loads_;
  Weights all_;
};

}  // namespace

double passed_on(Protocol protocol, double chunk_bytes) {
  return protocol == Protocol::kSimple ? chunk_bytes / 8 : 0;
}

LatencyPart pipeline_fill(const ModelContext& context, const Placement& placement,
                          const Graphs& graphs, const Pipeline& pipeline) {
  LatencyPart part{"until the pipeline is full", 0, 0};
  if (!(pipeline.part > 0)) return part;
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
