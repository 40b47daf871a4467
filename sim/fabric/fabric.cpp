// SPDX-License-Identifier: Apache-2.0
#include "sim/fabric/fabric.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "sim/fabric/fair_shares.hpp"
#include "sim/fabric/folding.hpp"

namespace rehearse::sim {

Fabric::Fabric(std::vector<BytesPerSec> capacities)
    : capacities_(std::move(capacities)),
      kept_(capacities_.size(), false),
      links_(capacities_.size()) {}

RouteId Fabric::add_route(std::span<const LinkWeight> route, RateCap cap) {
  std::vector<LinkWeight> sorted(route.begin(), route.end());
  if (cap.rate > 0) {
    const auto [at, fresh] =
        caps_.emplace(std::pair{cap.owner, cap.rate}, static_cast<LinkId>(capacities_.size()));
    if (fresh) {
      capacities_.push_back(cap.rate);
      kept_.push_back(false);
    }
    sorted.push_back({at->second, 1});
  }
  std::sort(sorted.begin(), sorted.end(),
            [](const LinkWeight& a, const LinkWeight& b) { return a.link < b.link; });
  size_t n = 0;
  for (const LinkWeight& use : sorted) {
    if (n > 0 && sorted[n - 1].link == use.link) {
      sorted[n - 1].weight += use.weight;
    } else {
      sorted[n++] = use;
    }
  }
  sorted.resize(n);
  uint64_t hash = 1469598103934665603u;
  for (const LinkWeight& use : sorted) {
    hash = (hash ^ use.link) * 1099511628211u;
    hash = (hash ^ use.weight) * 1099511628211u;
  }
  std::vector<RouteId>& same = route_ids_[hash];
  for (RouteId id : same) {
    if (routes_[id] == sorted) return id;
  }
  const auto id = static_cast<RouteId>(routes_.size());
  routes_.push_back(std::move(sorted));
  route_bytes_.push_back(0);
  same.push_back(id);
  return id;
}

bool Fabric::crosses(RouteId route, LinkId link) const {
  const std::vector<LinkWeight>& uses = routes_[route];
  const auto at = std::lower_bound(uses.begin(), uses.end(), link,
                                   [](const LinkWeight& use, LinkId id) { return use.link < id; });
  return at != uses.end() && at->link == link;
}

std::span<const LinkWeight> Fabric::links_of(RouteId route) const {
  const std::vector<LinkWeight>& uses = routes_[route];
  const auto caps = std::find_if(uses.begin(), uses.end(),
                                 [&](const LinkWeight& use) { return use.link >= links_; });
  return {uses.begin(), caps};
}

Nanos Fabric::alone(RouteId route, double bytes) const {
  if (!(bytes > 0) || routes_[route].empty()) return 0;
  BytesPerSec bound = std::numeric_limits<double>::infinity();
  for (const LinkWeight& use : routes_[route]) {
    bound = std::min(bound, capacities_[use.link] / use.weight);
  }
  if (!(bound > 0)) return -1;
  const double time = bytes / bound * 1e9;
  constexpr double kLatest = static_cast<double>(kEndOfTime);
  return time < kLatest ? static_cast<Nanos>(std::nearbyint(time)) : kEndOfTime;
}

void Fabric::carry(RouteId route, double bytes) {
  ++counters_.flows;
  count_visits(1);
  route_bytes_[route] += bytes;
}

void Fabric::keep(LinkId link) { kept_[link] = true; }

void Fabric::push(std::vector<Timer>& heap, Timer timer) {
  const Nanos due = next_timer();
  heap.push_back(timer);
  std::push_heap(heap.begin(), heap.end(), std::greater<>());
  if (listener_ == nullptr) return;
  if (const Nanos next = next_timer(); due < 0 || next < due) wake_at(next);
}

void Fabric::timer(Nanos when, uint64_t tag) {
  ++counters_.timers;
  push(timers_, {std::max(when, now_), order_++, tag, Due::kTimer});
}

void Fabric::soft_timer(Nanos when, uint64_t tag) {
  ++counters_.timers;
  push(soft_, {std::max(when, now_), order_++, tag, Due::kTimer});
}

void Fabric::start(RouteId route, double bytes, uint64_t tag) {
  ++counters_.flows;
  ++in_flight_;
  if (!(bytes > 0) || folded_[route].constraints.empty()) {
    push(timers_, {now_, order_++, tag, Due::kEmptyFlow});
    return;
  }
  route_bytes_[route] += bytes;
  uint32_t id = static_cast<uint32_t>(flows_.size());
  if (unused_.empty()) {
    flows_.emplace_back();
  } else {
    id = unused_.back();
    unused_.pop_back();
  }
  Flow& flow = flows_[id];
  flow = {route, tag, bytes, clock(), 0, flow.turn + 1, Flow::State::kFree};
  count_visits(folded_[route].constraints.size());
  std::vector<uint32_t> crowded;
  if (!demand_->start(id, route, crowded)) {
    for (const uint32_t other : crowded) share(other);
    flow.state = Flow::State::kShares;
    ++counters_.shared;
    return start_flow(route, bytes, id);
  }
  const double end = (flow.since + bytes / demand_->bound(route)) * 1e9;
  if (!(demand_->bound(route) > 0)) return;  // over a link that is down
  constexpr double kLatest = static_cast<double>(kEndOfTime);
  const Nanos when = end < kLatest ? static_cast<Nanos>(std::nearbyint(end)) : kEndOfTime + 1;
  push(timers_, {std::max(when, now_), order_++, uint64_t{flow.turn} << 32 | id, Due::kFreeFlow});
}

void Fabric::share(uint32_t id) {
  Flow& flow = flows_[id];
  const double rate = demand_->bound(flow.route);
  const double left = flow.bytes - rate * (clock() - flow.since);
  if (rate > 0 && left <= rate * 1e-9) return;  // it ends now
  demand_->hold(id, flow.route);
  flow.state = Flow::State::kShares;
  ++counters_.shared;
  start_flow(flow.route, left, id);
}

uint64_t Fabric::forget(uint32_t id) {
  Flow& flow = flows_[id];
  demand_->end(id, flow.route, flow.state == Flow::State::kFree);
  flow.state = Flow::State::kNone;
  unused_.push_back(id);
  return flow.tag;
}

bool Fabric::set_capacity(LinkId link, BytesPerSec capacity) {
  if (link >= links_ || !kept_[link]) return false;
  capacities_[link] = capacity;
  if (listener_ == nullptr) return true;
  // A kept link that no route uses has no constraint, and nothing to change.
  if (const auto own = own_constraint_.find(link); own != own_constraint_.end()) {
    constraint_capacity_[own->second.first] = capacity / own->second.second;
    set_constraint(own->second.first, capacity / own->second.second);
  }
  return true;
}

void Fabric::halt(uint64_t mask, uint64_t bits) {
  for (uint32_t id = 0; id < flows_.size(); ++id) {
    Flow& flow = flows_[id];
    if ((flow.tag & mask) != bits) continue;
    if (flow.state == Flow::State::kFree) {
      flow.left = flow.bytes - demand_->bound(flow.route) * (clock() - flow.since);
      demand_->end(id, flow.route, true);
    }
    if (flow.state == Flow::State::kShares) {
      flow.left = left_of(id);
      halt_flow(id);
    }
    if (flow.state != Flow::State::kNone) flow.state = Flow::State::kHalted;
  }
}

bool Fabric::moves_other_than(uint64_t mask, uint64_t bits) const {
  return std::any_of(flows_.begin(), flows_.end(), [&](const Flow& flow) {
    if (flow.state != Flow::State::kFree && flow.state != Flow::State::kShares) return false;
    if ((flow.tag & mask) == bits) return false;
    const std::vector<LinkWeight>& uses = folded_[flow.route].constraints;
    return std::all_of(uses.begin(), uses.end(),
                       [&](const LinkWeight& use) { return constraint_capacity_[use.link] > 0; });
  });
}

void Fabric::find_demand(const std::vector<Constraint>& constraints) {
  std::vector<BytesPerSec> capacity;
  capacity.reserve(constraints.size());
  for (const Constraint& constraint : constraints) capacity.push_back(constraint.capacity);
  std::vector<bool> changes(constraints.size(), false);
  for (const auto& [link, own] : own_constraint_) changes[own.first] = true;
  std::vector<std::vector<Demand::Use>> routes;
  for (const FoldedRoute& route : folded_) {
    auto& uses = routes.emplace_back();
    for (const LinkWeight& use : route.constraints) uses.push_back({use.link, use.weight});
  }
  demand_.emplace(std::move(capacity), changes, std::move(routes));
}

void Fabric::end_free_flow(uint64_t tag) {
  const auto id = static_cast<uint32_t>(tag);
  const Flow& flow = flows_[id];
  if (flow.turn != tag >> 32 || flow.state != Flow::State::kFree) return;  // it shares by now
  if (now_ > kEndOfTime) {
    too_long_ = true;
    return stop();
  }
  --in_flight_;
  listener_->on_flow_end(forget(id));
}

void Fabric::pause_at(Nanos when) {
  pause_ = std::max(when, now_);
  if (listener_ != nullptr) wake_for_pause();
}

void Fabric::fire_pause() {
  if (pause_ < 0 || stopped_) return;
  drain(pause_);
  if (stopped_) return;
  now_ = std::max(now_, std::exchange(pause_, -1));
  listener_->on_pause();
}

std::vector<Fabric::InFlight> Fabric::flows() const {
  std::vector<InFlight> out;
  std::vector<size_t> sharing;  // positions in `out`
  std::vector<std::span<const LinkWeight>> uses;
  for (uint32_t id = 0; id < flows_.size(); ++id) {
    const Flow& flow = flows_[id];
    if (flow.state == Flow::State::kNone) continue;
    InFlight& row = out.emplace_back(InFlight{flow.tag, flow.route, flow.bytes, flow.left, 0});
    if (flow.state == Flow::State::kFree) {
      row.rate = demand_->bound(flow.route);
      row.left = std::max(0.0, flow.bytes - row.rate * (clock() - flow.since));
    } else if (flow.state == Flow::State::kShares) {
      row.left = left_of(id);
      sharing.push_back(out.size() - 1);
      uses.emplace_back(folded_[flow.route].constraints);
    }
  }
  const std::vector<BytesPerSec> rates = fair_shares(constraint_capacity_, uses);
  for (size_t i = 0; i < sharing.size(); ++i) out[sharing[i]].rate = rates[i];
  // The clock stands a little behind the moment that is looked at.
  const double behind = clock() - static_cast<double>(now_) * 1e-9;
  for (InFlight& flow : out) flow.left = std::min(flow.bytes, flow.left + flow.rate * behind);
  return out;
}

void Fabric::stop() {
  stopped_ = true;
  timers_.clear();
  soft_.clear();
}

Nanos Fabric::next_timer() const {
  if (soft_.empty()) return timers_.empty() ? -1 : timers_.front().when;
  const Nanos soft = soft_.front().when + slack_;
  return timers_.empty() ? soft : std::min(soft, timers_.front().when);
}

void Fabric::announce(const std::vector<Timer>& heap) const {
  using Soon = FabricListener::Soon;
  // The first of a heap is next, one of the two below it comes after that.
  for (size_t i = std::min<size_t>(heap.size(), 3); i-- > 0;) {
    const Timer& timer = heap[i];
    if (timer.what != Due::kFreeFlow) {
      listener_->on_soon(timer.tag, i == 0 ? Soon::kNext : Soon::kLater);
    } else if (i == 0) {
      listener_->on_soon(flows_[static_cast<uint32_t>(timer.tag)].tag, Soon::kNext);
    } else {
      __builtin_prefetch(&flows_[static_cast<uint32_t>(timer.tag)]);
    }
  }
}

void Fabric::drain(Nanos now) {
  while (true) {
    const bool hard = !timers_.empty() && timers_.front().when <= now;
    const bool soft = !soft_.empty() && soft_.front().when <= now;
    if (!hard && !soft) return;
    auto& heap = !soft || (hard && soft_.front() > timers_.front()) ? timers_ : soft_;
    const Timer timer = heap.front();
    std::pop_heap(heap.begin(), heap.end(), std::greater<>());
    heap.pop_back();
    now_ = std::max(now_, timer.when);
    announce(heap);
    switch (timer.what) {
      case Due::kTimer:
        listener_->on_timer(timer.tag);
        break;
      case Due::kEmptyFlow:
        --in_flight_;
        listener_->on_flow_end(timer.tag);
        break;
      case Due::kFreeFlow:
        end_free_flow(timer.tag);
        break;
    }
  }
}

void Fabric::fire_timers(Nanos now) {
  drain(now);
  if (const Nanos next = next_timer(); next >= 0) wake_at(next);
}

void Fabric::end_flow(Nanos now, uint32_t flow) {
  if (stopped_) return;
  drain(now);
  if (stopped_) return;
  now_ = std::max(now_, now);
  if (flows_[flow].state == Flow::State::kHalted) return;  // by what came just before
  --in_flight_;
  listener_->on_flow_end(forget(flow));
}

Result<void> Fabric::run(FabricListener& listener) {
  Folding folding = fold(capacities_, routes_, kept_);
  std::vector<Constraint> constraints;
  for (BytesPerSec capacity : folding.capacity) constraints.push_back({capacity});
  folded_.resize(routes_.size());
  for (size_t r = 0; r < routes_.size(); ++r) {
    folded_[r].constraints = std::move(folding.routes[r]);
    counters_.route_entries += folded_[r].constraints.size();
  }
  own_constraint_ = std::move(folding.kept);
  counters_.constraints = constraints.size();
  find_demand(constraints);
  if (auto ready = prepare(constraints, folded_); !ready) return ready;
  constraint_capacity_ = folding.capacity;
  listener_ = &listener;
  if (pause_ >= 0) wake_for_pause();
  if (const Nanos next = next_timer(); next >= 0) wake_at(next);
  auto done = run_clock();
  listener_ = nullptr;
  if (done && too_long_) return run_too_long();
  return done;
}

Result<void> run_too_long() {
  return fail(Code::kLimit, "the run would take more than 126 years of simulated time", {},
              "look for a bandwidth or a speed that is far too small");
}

std::vector<double> Fabric::bytes_by_link() const {
  std::vector<double> bytes(capacities_.size(), 0);
  for (size_t r = 0; r < routes_.size(); ++r) {
    for (const LinkWeight& use : routes_[r]) bytes[use.link] += route_bytes_[r] * use.weight;
  }
  bytes.resize(links_);
  return bytes;
}

}  // namespace rehearse::sim
