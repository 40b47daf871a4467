// SPDX-License-Identifier: Apache-2.0
// A plain max-min solver by progressive filling: all flows grow at the same rate until a constraint
// is full; its flows are frozen at that rate; the rest go on. Recomputed from scratch at each start
// and end.
#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/fabric/fabric.hpp"

namespace rehearse::sim {
namespace {

class ReferenceFabric final : public Fabric {
 public:
  using Fabric::Fabric;

 private:
  struct Flow {
    RouteId route;
    double left;  // bytes
    double rate;
    uint64_t tag;
  };

  Result<void> prepare(const std::vector<Constraint>& constraints,
                       const std::vector<FoldedRoute>& routes) override {
    constraints_ = constraints;
    routes_ = &routes;
    return {};
  }

  void start_flow(RouteId route, double bytes, uint64_t tag) override {
    flows_.push_back({route, bytes, 0, tag});
    shared_ = false;
  }

  void wake_at(Nanos) override {}

  void share() {
    std::vector<double> left(constraints_.size()), weight(constraints_.size(), 0);
    for (size_t c = 0; c < left.size(); ++c) left[c] = constraints_[c].capacity;
    std::vector<Flow*> open;
    for (Flow& flow : flows_) {
      open.push_back(&flow);
      for (const LinkWeight& use : (*routes_)[flow.route].constraints)
        weight[use.link] += use.weight;
    }
    while (!open.empty()) {
      double rate = std::numeric_limits<double>::infinity();
      size_t tightest = 0;
      for (size_t c = 0; c < left.size(); ++c) {
        if (weight[c] > 0 && left[c] / weight[c] < rate) {
          rate = left[c] / weight[c];
          tightest = c;
        }
      }
      std::vector<Flow*> rest;
      for (Flow* flow : open) {
        const auto& uses = (*routes_)[flow->route].constraints;
        const bool frozen = std::any_of(
            uses.begin(), uses.end(), [&](const LinkWeight& use) { return use.link == tightest; });
        if (!frozen) {
          rest.push_back(flow);
          continue;
        }
        flow->rate = rate;
        for (const LinkWeight& use : uses) {
          left[use.link] = std::max(0.0, left[use.link] - rate * use.weight);
          weight[use.link] -= use.weight;
        }
      }
      open = std::move(rest);
    }
    shared_ = true;
  }

  Result<void> run_clock() override {
    while (true) {
      if (!shared_) share();
      double end = std::numeric_limits<double>::infinity();
      for (const Flow& flow : flows_) end = std::min(end, time_ + flow.left / flow.rate);
      const Nanos timer = next_timer();
      if (timer < 0 && flows_.empty()) return {};
      const double wake =
          timer < 0 ? std::numeric_limits<double>::infinity() : static_cast<double>(timer) * 1e-9;
      if (wake <= end) {
        advance(std::max(wake, time_));
        fire_timers(timer);
        continue;
      }
      if (end > static_cast<double>(kEndOfTime) * 1e-9) return run_too_long();
      advance(end);
      std::vector<uint64_t> ended;
      std::erase_if(flows_, [&](const Flow& flow) {
        const bool done = flow.left <= flow.rate * 1e-12;
        if (done) ended.push_back(flow.tag);
        return done;
      });
      shared_ = false;
      for (uint64_t tag : ended) end_flow(static_cast<Nanos>(std::nearbyint(time_ * 1e9)), tag);
    }
  }

  void advance(double to) {
    for (Flow& flow : flows_) flow.left = std::max(0.0, flow.left - flow.rate * (to - time_));
    time_ = to;
  }

  std::vector<Constraint> constraints_;
  const std::vector<FoldedRoute>* routes_ = nullptr;
  std::vector<Flow> flows_;
  double time_ = 0;
  bool shared_ = true;
};

}  // namespace

std::unique_ptr<Fabric> make_reference_fabric(std::vector<BytesPerSec> capacities) {
  return std::make_unique<ReferenceFabric>(std::move(capacities));
}

}  // namespace rehearse::sim
