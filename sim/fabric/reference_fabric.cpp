// SPDX-License-Identifier: Apache-2.0
// A plain max-min solver by progressive filling: all flows grow at the same rate until a constraint
// is full; its flows are frozen at that rate; the rest go on. At each start and end only the flows
// that are joined to the changed one by shared constraints are shared out anew; ends wait in a
// heap. Flows that end within a picosecond end together.
#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/fabric/fabric.hpp"

namespace rehearse::sim {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr double kTogether = 1e-12;  // seconds

class ReferenceFabric final : public Fabric {
 public:
  using Fabric::Fabric;

 private:
  struct Flow {
    RouteId route = 0;
    double left = 0;   // bytes at `as_of`
    double as_of = 0;  // seconds
    double rate = 0;
    uint32_t id = 0;
    uint64_t serial = 0;  // order of starts; also tells a reused slot from its former flow
    uint32_t version = 0;
    bool alive = false, halted = false, seen = false, frozen = false;
  };
  struct Share {
    double capacity = 0;
    std::vector<uint32_t> flows;  // in flight over it
    double left = 0, weight = 0;  // while sharing
    bool seen = false, dirty = false;
  };
  struct End {
    double when;
    uint64_t serial;
    uint32_t slot, version;
    bool operator>(const End& o) const {
      return when != o.when ? when > o.when : serial > o.serial;
    }
  };

  Result<void> prepare(const std::vector<Constraint>& constraints,
                       const std::vector<FoldedRoute>& routes) override {
    shares_.resize(constraints.size());
    for (size_t c = 0; c < constraints.size(); ++c) shares_[c].capacity = constraints[c].capacity;
    routes_ = &routes;
    return {};
  }

  [[nodiscard]] const std::vector<LinkWeight>& uses(const Flow& flow) const {
    return (*routes_)[flow.route].constraints;
  }

  void touch(LinkId constraint) {
    if (shares_[constraint].dirty) return;
    shares_[constraint].dirty = true;
    dirty_.push_back(constraint);
  }

  void start_flow(RouteId route, double bytes, uint32_t id) override {
    uint32_t slot = 0;
    if (free_.empty()) {
      slot = static_cast<uint32_t>(flows_.size());
      flows_.emplace_back();
    } else {
      slot = free_.back();
      free_.pop_back();
    }
    Flow& flow = flows_[slot];
    flow = {route, bytes, time_, 0, id, serial_++, flow.version + 1, true};
    for (const LinkWeight& use : uses(flow)) {
      shares_[use.link].flows.push_back(slot);
      touch(use.link);
    }
  }

  void set_constraint(LinkId constraint, BytesPerSec capacity) override {
    shares_[constraint].capacity = capacity;
    touch(constraint);
  }

  void halt_flow(uint32_t id) override {
    for (Flow& flow : flows_) {
      if (!flow.alive || flow.id != id) continue;
      flow.halted = true;
      for (const LinkWeight& use : uses(flow)) touch(use.link);
    }
  }

  [[nodiscard]] double left_of(uint32_t id) const override {
    const auto at = std::find_if(flows_.begin(), flows_.end(),
                                 [id](const Flow& flow) { return flow.alive && flow.id == id; });
    return at == flows_.end() ? 0 : std::max(0.0, at->left - at->rate * (time_ - at->as_of));
  }

  void wake_at(Nanos) override {}
  void wake_for_pause() override {}
  [[nodiscard]] double clock() const override { return time_; }

  // Flows and constraints joined to the dirty ones, in order of starts.
  void gather() {
    component_.clear();
    members_.clear();
    for (LinkId c : dirty_) {
      shares_[c].dirty = false;
      shares_[c].seen = true;
      component_.push_back(c);
    }
    dirty_.clear();
    for (size_t i = 0; i < component_.size(); ++i) {
      for (uint32_t slot : shares_[component_[i]].flows) {
        if (flows_[slot].seen) continue;
        flows_[slot].seen = true;
        members_.push_back(slot);
        for (const LinkWeight& use : uses(flows_[slot])) {
          if (shares_[use.link].seen) continue;
          shares_[use.link].seen = true;
          component_.push_back(use.link);
        }
      }
    }
    std::sort(component_.begin(), component_.end());
    std::sort(members_.begin(), members_.end(),
              [&](uint32_t a, uint32_t b) { return flows_[a].serial < flows_[b].serial; });
  }

  void share() {
    if (dirty_.empty()) return;
    gather();
    for (LinkId c : component_) {
      shares_[c].left = shares_[c].capacity;
      shares_[c].weight = 0;
      shares_[c].seen = false;
    }
    size_t open = 0;
    for (uint32_t slot : members_) {
      Flow& flow = flows_[slot];
      flow.seen = false;
      flow.frozen = flow.halted;
      flow.left = std::max(0.0, flow.left - flow.rate * (time_ - flow.as_of));
      flow.as_of = time_;
      flow.rate = 0;
      if (flow.frozen) continue;
      ++open;
      count_visits(uses(flow).size());
      for (const LinkWeight& use : uses(flow)) shares_[use.link].weight += use.weight;
    }
    while (open > 0) {
      double rate = kNever;
      LinkId tightest = 0;
      count_visits(component_.size());
      for (LinkId c : component_) {
        const Share& s = shares_[c];
        if (s.weight > 0 && s.left / s.weight < rate) {
          rate = s.left / s.weight;
          tightest = c;
        }
      }
      if (rate == kNever) break;
      for (uint32_t slot : shares_[tightest].flows) {
        Flow& flow = flows_[slot];
        if (flow.frozen) continue;
        flow.frozen = true;
        flow.rate = rate;
        --open;
        count_visits(uses(flow).size());
        for (const LinkWeight& use : uses(flow)) {
          Share& s = shares_[use.link];
          s.left = std::max(0.0, s.left - rate * use.weight);
          s.weight -= use.weight;
        }
      }
      shares_[tightest].weight = 0;
    }
    for (uint32_t slot : members_) {
      Flow& flow = flows_[slot];
      ++flow.version;
      if (!(flow.rate > 0)) continue;
      ends_.push_back({time_ + flow.left / flow.rate, flow.serial, slot, flow.version});
      std::push_heap(ends_.begin(), ends_.end(), std::greater<>());
    }
  }

  [[nodiscard]] bool stale(const End& end) const {
    const Flow& flow = flows_[end.slot];
    return !flow.alive || flow.serial != end.serial || flow.version != end.version;
  }

  void drop_front() {
    std::pop_heap(ends_.begin(), ends_.end(), std::greater<>());
    ends_.pop_back();
  }

  void remove(uint32_t slot) {
    Flow& flow = flows_[slot];
    flow.alive = false;
    for (const LinkWeight& use : uses(flow)) {
      auto& list = shares_[use.link].flows;
      list.erase(std::find(list.begin(), list.end(), slot));
      touch(use.link);
    }
    free_.push_back(slot);
  }

  Result<void> run_clock() override {
    while (!stopped()) {
      share();
      while (!ends_.empty() && stale(ends_.front())) drop_front();
      double end = kNever;
      if (!ends_.empty()) end = ends_.front().when;
      const Nanos timer = next_timer();
      const double look = pause() < 0 ? kNever : (static_cast<double>(pause()) + 0.5) * 1e-9;
      if (timer < 0 && ends_.empty() && look == kNever) return {};
      const double wake = timer < 0 ? kNever : static_cast<double>(timer) * 1e-9;
      if (look < std::min(wake, end)) {
        time_ = std::max(look, time_);
        fire_pause();
        continue;
      }
      if (wake <= end) {
        time_ = std::max(wake, time_);
        fire_timers(timer);
        continue;
      }
      if (end > static_cast<double>(kEndOfTime) * 1e-9) return run_too_long();
      time_ = std::max(time_, end);
      std::vector<std::pair<uint64_t, uint32_t>> ended;  // serial, id
      while (!ends_.empty() && ends_.front().when <= end + kTogether) {
        const End next = ends_.front();
        drop_front();
        if (stale(next)) continue;
        ended.emplace_back(next.serial, flows_[next.slot].id);
        remove(next.slot);
      }
      std::sort(ended.begin(), ended.end());
      const auto now = static_cast<Nanos>(std::nearbyint(time_ * 1e9));
      for (const auto& [serial, id] : ended) end_flow(now, id);
    }
    return {};
  }

  std::vector<Share> shares_;
  const std::vector<FoldedRoute>* routes_ = nullptr;
  std::vector<Flow> flows_;
  std::vector<uint32_t> free_;
  std::vector<End> ends_;  // heap
  std::vector<LinkId> dirty_, component_;
  std::vector<uint32_t> members_;
  uint64_t serial_ = 0;
  double time_ = 0;
};

}  // namespace

std::unique_ptr<Fabric> make_reference_fabric(std::vector<BytesPerSec> capacities) {
  return std::make_unique<ReferenceFabric>(std::move(capacities));
}

}  // namespace rehearse::sim
