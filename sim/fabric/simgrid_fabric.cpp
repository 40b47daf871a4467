// SPDX-License-Identifier: Apache-2.0
// The fabric on SimGrid: every folded constraint is a link, every route an ordered pair of pseudo-hosts
// joined by the links it uses (a link of weight w stands w times), every flow a communication
// between them; n hosts make n(n - 1) pairs, so that thousands of routes need few. No actors:
// completion callbacks and one timer at the earliest date asked for.
//
// What is switched off and why (SimGrid 3.32): TCP window limit and latency-weighted sharing (they
// are not how RDMA shares), cross traffic (links here are one-way), the LV08 factors (CM02 has
// none). Links have latency 0; latency is a timer before the flow.
#include <signal.h>
#include <xbt/log.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <simgrid/kernel/Timer.hpp>
#include <simgrid/s4u.hpp>

#include "sim/fabric/fabric.hpp"

namespace rehearse::sim {
namespace {

namespace sg = simgrid::s4u;

// SimGrid counts whole bytes; flows of a few bytes per ring need finer grains.
constexpr double kGrain = 1024.0;

// What SimGrid does when Ctrl-C is pressed or memory is violated is not for us.
class OwnSignals {
 public:
  OwnSignals() {
    for (size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], nullptr, &before_[i]);
  }
  ~OwnSignals() {
    for (size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &before_[i], nullptr);
  }
  OwnSignals(const OwnSignals&) = delete;
  OwnSignals& operator=(const OwnSignals&) = delete;

 private:
  static constexpr std::array kSignals = {SIGINT, SIGSEGV, SIGBUS};
  std::array<struct sigaction, kSignals.size()> before_{};
};

// The one engine of this process, or of the one it was forked from. It lives as long as the process, and nothing of it is
// taken down at the end: SimGrid's static destructors do not like either.
sg::Engine& engine_of_process() {
  static sg::Engine* const engine = [] {
    const OwnSignals signals;
    xbt_log_control_set("root.thres:critical");
    static int argc = 2;
    static char name[] = "rehearse";
    static char leave[] = "--cfg=debug/clean-atexit:no";
    static char* argv[] = {name, leave, nullptr};
    auto* made = new sg::Engine(&argc, argv);  // NOLINT: owned by SimGrid
    sg::Engine::set_config("network/model:CM02");
    sg::Engine::set_config("network/TCP-gamma:0");
    sg::Engine::set_config("network/crosstraffic:0");
    return made;
  }();
  return *engine;
}

class SimGridFabric final : public Fabric {
 public:
  using Fabric::Fabric;
  // SimGrid complains about communications that are dropped while they run: they stay with it.
  ~SimGridFabric() override {
    for (Flow& flow : flows_) (void)flow.comm.detach();
  }

 private:
  struct Flow {
    sg::CommPtr comm;  // null: it is parked, or the slot is free
    uint32_t id = 0;
    RouteId route = 0;
    bool halted = false;
    double parked = 0;  // grains of a flow that found a link down; it starts when the way is free
  };

  Result<void> prepare(const std::vector<Constraint>& constraints,
                       const std::vector<FoldedRoute>& routes) override {
    try {
      build(constraints, routes);
    } catch (const std::exception& e) {
      return fail(Code::kInternal, std::string("SimGrid refused the platform: ") + e.what());
    }
    return {};
  }

  void build(const std::vector<Constraint>& constraints, const std::vector<FoldedRoute>& routes) {
    engine_ = &engine_of_process();
    sg::NetZone* root = sg::create_full_zone("root");
    routes_ = &routes;
    links_.reserve(constraints.size());
    for (size_t c = 0; c < constraints.size(); ++c) {
      // Flows over a link of no capacity are parked; SimGrid wants a positive number.
      down_.push_back(!(constraints[c].capacity > 0));
      const double capacity = down_[c] ? 1.0 : constraints[c].capacity * kGrain;
      links_.push_back(root->create_link("l" + std::to_string(c), capacity));
    }
    size_t count = 2;
    while (count * (count - 1) < routes.size()) ++count;
    std::vector<sg::Host*> hosts;
    for (size_t h = 0; h < count; ++h) {
      hosts.push_back(root->create_host("h" + std::to_string(h), 1.0));
    }
    for (size_t r = 0; r < routes.size(); ++r) {
      const size_t first = r / (count - 1), second = r % (count - 1);
      sg::Host* from = hosts[first];
      sg::Host* to = hosts[second < first ? second : second + 1];
      std::vector<sg::LinkInRoute> path;
      for (const LinkWeight& use : routes[r].constraints) {
        for (uint32_t w = 0; w < use.weight; ++w) path.emplace_back(links_[use.link]);
      }
      root->add_route(from->get_netpoint(), to->get_netpoint(), nullptr, nullptr, path, false);
      ends_.emplace_back(from, to);
    }
    for (sg::Link* link : links_) link->seal();
    root->seal();
    engine_->seal_platform();
    sg::Activity::on_completion_cb([this](const sg::Activity& activity) { completed(activity); });
  }

  void start_flow(RouteId route, double bytes, uint32_t flow) override {
    size_t slot = flows_.size();
    if (!free_.empty()) {
      slot = free_.back();
      free_.pop_back();
    } else {
      flows_.emplace_back();
    }
    flows_[slot] = {nullptr, flow, route};
    launch(slot, std::max(1.0, std::nearbyint(bytes * kGrain)));
  }

  void launch(size_t slot, double grains) {
    Flow& flow = flows_[slot];
    flow.parked = blocked(flow) ? grains : 0;
    if (flow.parked > 0) return;
    flow.comm = sg::Comm::sendto_init(ends_[flow.route].first, ends_[flow.route].second);
    flow.comm->set_payload_size(static_cast<uint64_t>(grains));
    slots_[flow.comm.get()] = slot;
    flow.comm->vetoable_start();
  }

  [[nodiscard]] bool blocked(const Flow& flow) const {
    if (flow.halted) return true;
    const auto& uses = (*routes_)[flow.route].constraints;
    return std::any_of(uses.begin(), uses.end(),
                       [&](const LinkWeight& use) { return down_[use.link]; });
  }

  void set_constraint(LinkId constraint, BytesPerSec capacity) override {
    const bool was_down = down_[constraint];
    down_[constraint] = !(capacity > 0);
    if (!down_[constraint]) {
      const double before = links_[constraint]->get_bandwidth();
      links_[constraint]->set_bandwidth(capacity * kGrain);
      if (capacity * kGrain > before) restart(constraint);
    }
    if (was_down != down_[constraint]) park_blocked();
  }

  void halt_flow(uint32_t id) override {
    for (Flow& flow : flows_)
      flow.halted |= (flow.comm != nullptr || flow.parked > 0) && flow.id == id;
    park_blocked();
  }

  [[nodiscard]] double left_of(uint32_t id) const override {
    const auto at = std::find_if(flows_.begin(), flows_.end(), [id](const Flow& flow) {
      return flow.id == id && (flow.comm != nullptr || flow.parked > 0);
    });
    if (at == flows_.end()) return 0;
    return (at->comm != nullptr ? at->comm->get_remaining() : at->parked) / kGrain;
  }

  // SimGrid bounds a flow by the slowest link of its route at its start, for ever: flows over a link
  // that got faster start anew with what they have left.
  void restart(LinkId constraint) {
    for (size_t slot = 0; slot < flows_.size(); ++slot) {
      Flow& flow = flows_[slot];
      if (flow.comm == nullptr) continue;
      const auto& uses = (*routes_)[flow.route].constraints;
      if (std::none_of(uses.begin(), uses.end(),
                       [&](const LinkWeight& use) { return use.link == constraint; })) {
        continue;
      }
      launch(slot, take_back(slot));
    }
  }

  // Flows over a link that is down leave SimGrid with what they have left and start again when their way is
  // free: what is suspended there keeps part of its share, and a resumed flow may never end.
  void park_blocked() {
    for (size_t slot = 0; slot < flows_.size(); ++slot) {
      if (flows_[slot].comm != nullptr && blocked(flows_[slot])) {
        flows_[slot].parked = take_back(slot);
      } else if (flows_[slot].parked > 0 && !blocked(flows_[slot])) {
        launch(slot, flows_[slot].parked);
      }
    }
  }

  // Ends a flow in SimGrid; returns the grains it has left.
  double take_back(size_t slot) {
    Flow& flow = flows_[slot];
    const double left = std::max(1.0, std::nearbyint(flow.comm->get_remaining()));
    slots_.erase(flow.comm.get());
    ended_.push_back(flow.comm);
    flow.comm->cancel();
    flow.comm = nullptr;
    return left;
  }

  void completed(const sg::Activity& activity) {
    const auto at = slots_.find(&activity);
    if (at == slots_.end()) return;
    const size_t slot = at->second;
    if (stopped()) return;
    const uint32_t id = flows_[slot].id;
    ended_.push_back(std::move(flows_[slot].comm));  // SimGrid still holds the activity's memory
    flows_[slot].comm = nullptr;
    slots_.erase(at);
    free_.push_back(slot);
    if (sg::Engine::get_clock() > static_cast<double>(kEndOfTime) * 1e-9) {
      too_long_ = true;  // nothing follows from it
      return;
    }
    end_flow(to_nanos(sg::Engine::get_clock()), id);
    if (ended_.size() > 256) ended_.erase(ended_.begin(), ended_.end() - 64);
  }

  [[nodiscard]] double clock() const override { return sg::Engine::get_clock(); }

  void wake_at(Nanos when) override {
    if (armed_ >= 0 && armed_ <= when) return;
    armed_ = when;
    const double date = std::max(static_cast<double>(when) * 1e-9, sg::Engine::get_clock());
    simgrid::kernel::timer::Timer::set(date, [this, when] {
      if (armed_ != when || stopped()) return;  // an earlier one took over
      armed_ = -1;
      fire_timers(when);
    });
  }

  void wake_for_pause() override {
    const double date = (static_cast<double>(pause()) + 0.5) * 1e-9;
    simgrid::kernel::timer::Timer::set(std::max(date, sg::Engine::get_clock()),
                                       [this] { fire_pause(); });
  }

  Result<void> run_clock() override {
    try {
      engine_->run();
    } catch (const std::exception& e) {
      return fail(Code::kInternal, std::string("SimGrid stopped: ") + e.what());
    }
    if (too_long_) return run_too_long();
    return {};
  }

  // The one conversion of SimGrid's seconds to nanoseconds, rounding half to even.
  static Nanos to_nanos(double seconds) {
    return static_cast<Nanos>(std::nearbyint(seconds * 1e9));
  }

  sg::Engine* engine_ = nullptr;
  const std::vector<FoldedRoute>* routes_ = nullptr;
  std::vector<sg::Link*> links_;
  std::vector<bool> down_;  // by constraint
  std::vector<std::pair<sg::Host*, sg::Host*>> ends_;
  std::vector<Flow> flows_;
  std::vector<size_t> free_;
  std::unordered_map<const sg::Activity*, size_t> slots_;
  std::vector<sg::CommPtr> ended_;
  Nanos armed_ = -1;
  bool too_long_ = false;
};

}  // namespace

void start_simgrid() { (void)engine_of_process(); }

std::unique_ptr<Fabric> make_simgrid_fabric(std::vector<BytesPerSec> capacities) {
  return std::make_unique<SimGridFabric>(std::move(capacities));
}

}  // namespace rehearse::sim
