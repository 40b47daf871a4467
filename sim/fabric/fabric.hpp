// SPDX-License-Identifier: Apache-2.0
// Everything that shares bandwidth, behind a narrow seam. A Fabric knows links with capacities,
// routes over them, a clock with timers, and flows that share links max-min fairly. It does not
// know ranks, collectives or NCCL.
//
// A route lists links with weights: a flow of rate r takes weight * r of each link. So one flow can
// stand for all rings of a collective (r = rate of one ring, weight = rings through that link), and
// fairness is between rings, as it is between the connections of a network card.
//
// Two implementations: SimGridFabric (the one that runs) and ReferenceFabric (a plain exact solver,
// for tests at the seam and as the floor in benchmarks). Same input, same order of events.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/error.hpp"
#include "base/units.hpp"
#include "platforms/model/links.hpp"
#include "sim/fabric/demand.hpp"

namespace rehearse::sim {

using platforms::LinkId;
using RouteId = uint32_t;
// Simulated time ends here, 126 years: nothing that takes longer is a run.
constexpr Nanos kEndOfTime = 4'000'000'000'000'000'000;

struct LinkWeight {
  LinkId link = 0;
  uint32_t weight = 1;
  bool operator==(const LinkWeight&) const = default;
};

// A limit that is not a link of the platform; rate 0: none.
struct RateCap {
  BytesPerSec rate = 0;
  uint64_t owner = 0;
};

// Told what happened; may start flows and timers from inside the call. Events at the same
// nanosecond come in the order in which their timers were set.
class FabricListener {
 public:
  virtual ~FabricListener() = default;
  virtual void on_timer(uint64_t tag) = 0;
  virtual void on_flow_end(uint64_t tag) = 0;
  // One of these will probably be called next, or soon after that: a good moment to fetch from memory what it needs. Must
  // change nothing.
  enum class Soon : uint8_t { kNext, kLater };
  virtual void on_soon(uint64_t /*tag*/, Soon /*how*/) const {}
  // See Fabric::pause_at(); may look and stop, starts nothing.
  virtual void on_pause() {}
};

class Fabric {
 public:
  // Capacities in bytes per second by LinkId; 0 is a link that is down.
  explicit Fabric(std::vector<BytesPerSec> capacities);
  virtual ~Fabric() = default;
  Fabric(const Fabric&) = delete;
  Fabric& operator=(const Fabric&) = delete;

  // Before run(): declares a route; equal routes share an id. Weights of a link named twice add up.
  // With a cap, all flows of that owner on the route together get no more than `rate` per unit of
  // weight (the sockets of one communicator, say).
  RouteId add_route(std::span<const LinkWeight> route, RateCap cap = {});
  [[nodiscard]] bool crosses(RouteId route, LinkId link) const;
  // The links of the platform on a route, ascending.
  [[nodiscard]] std::span<const LinkWeight> links_of(RouteId route) const;
  // Before run(): keeps a link a constraint of its own. Without it, links that carry the same
  // routes in the same proportion are folded into one (folding.hpp). Needed for set_capacity().
  void keep(LinkId link);

  // Simulated time of the event being handled.
  [[nodiscard]] Nanos now() const { return now_; }
  // Calls on_timer(tag) at `when` (not before now).
  void timer(Nanos when, uint64_t tag);
  // The same for what starts no flow before `when` + slack: now() will be `when` and everything comes
  // in order of time, but the clock below need not stop there. Many such timers cost one stop.
  void soft_timer(Nanos when, uint64_t tag);
  void set_slack(Nanos slack) { slack_ = slack; }
  // Starts a flow of `bytes` (per unit of weight) now; on_flow_end(tag) when it is through. A flow
  // over a link that is down stands still until the link is up again.
  void start(RouteId route, double bytes, uint64_t tag);
  // How long a flow takes that nothing else holds up; -1: for ever. For links that are not kept.
  [[nodiscard]] Nanos alone(RouteId route, double bytes) const;
  // Counts the bytes of a flow that was not started because its time is known: its links carry
  // nothing else meanwhile.
  void carry(RouteId route, double bytes);
  // From now on `link` has this capacity; 0 takes it down. The link must have been kept (else false
  // and nothing changes); flows in flight get their new shares at once.
  bool set_capacity(LinkId link, BytesPerSec capacity);
  // Flows in flight whose tag has these bits (tag & mask == bits) stand still for ever.
  void halt(uint64_t mask, uint64_t bits);
  // Calls on_pause() once when everything up to and including `when` has happened and nothing after it; one at a
  // time. Looking changes nothing that follows. A run that ends before does not come there.
  void pause_at(Nanos when);
  // Ends the run: timers and flows that are left are dropped.
  void stop();

  // Runs until no timer is set and no flow moves.
  [[nodiscard]] Result<void> run(FabricListener& listener);

  // Flows in flight. After run(): those that will never end because a link on their way is down.
  [[nodiscard]] uint64_t in_flight() const { return in_flight_; }
  // Whether a flow in flight whose tag does not have these bits can move: not halted, no link of its route down.
  [[nodiscard]] bool moves_other_than(uint64_t mask, uint64_t bits) const;
  // Flows in flight as they are at on_pause(), in order of their numbers. Bytes and rate are per unit of weight.
  struct InFlight {
    uint64_t tag = 0;
    RouteId route = 0;
    double bytes = 0;
    double left = 0;
    BytesPerSec rate = 0;  // 0: it stands still
  };
  [[nodiscard]] std::vector<InFlight> flows() const;
  // What a link has now.
  [[nodiscard]] BytesPerSec capacity(LinkId link) const { return capacities_[link]; }
  // Bytes that have been put on each link so far.
  [[nodiscard]] std::vector<double> bytes_by_link() const;
  // How much work the run was: for tests of growth.
  struct Counters {
    uint64_t timers = 0;
    uint64_t flows = 0;
    uint64_t shared = 0;         // flows that a solver had to look at
    uint64_t constraints = 0;    // after folding
    uint64_t route_entries = 0;  // links on all routes after folding
    // Reference: constraints and uses of them looked at while sharing. SimGrid's own are not to be seen:
    // constraints of the flows that start.
    uint64_t visits = 0;
  };
  [[nodiscard]] Counters counters() const { return counters_; }

 protected:
  // A folded route: constraints with weights.
  struct Constraint {
    BytesPerSec capacity = 0;
  };
  struct FoldedRoute {
    std::vector<LinkWeight> constraints;  // `link` is an index into the constraints
  };

  // Called once before the first event.
  virtual Result<void> prepare(const std::vector<Constraint>& constraints,
                               const std::vector<FoldedRoute>& routes) = 0;
  // Of a flow that may have to share (demand.hpp); its number is free again when it has ended. Any
  // constraint on the route may have capacity 0.
  virtual void start_flow(RouteId route, double bytes, uint32_t flow) = 0;
  virtual void set_constraint(LinkId constraint, BytesPerSec capacity) = 0;
  virtual void halt_flow(uint32_t flow) = 0;
  // Of a flow that was started and has not ended: bytes that have not passed at clock().
  [[nodiscard]] virtual double left_of(uint32_t flow) const = 0;
  // Seconds, without the rounding of now().
  [[nodiscard]] virtual double clock() const = 0;
  // Runs the clock; calls fire_timers() at the dates asked for by wake_at() and end_flow() at ends.
  virtual Result<void> run_clock() = 0;
  // The earliest timer is now at `when`.
  virtual void wake_at(Nanos when) = 0;
  // The clock is to call fire_pause() half a nanosecond after pause(): ends of flows are rounded to `pause()` until then.
  virtual void wake_for_pause() = 0;

  void count_visits(uint64_t n) { counters_.visits += n; }
  void fire_timers(Nanos now);
  [[nodiscard]] Nanos pause() const { return pause_; }  // -1: none
  void fire_pause();
  void end_flow(Nanos now, uint32_t flow);
  [[nodiscard]] Nanos next_timer() const;  // when fire_timers() is due; -1: never
  [[nodiscard]] bool stopped() const { return stopped_; }

 private:
  enum class Due : uint8_t {
    kTimer,      // the listener's
    kEmptyFlow,  // end of a flow without bytes
    kFreeFlow    // end of a free flow; the tag is its number and the number's turn
  };
  struct Timer {
    Nanos when;
    uint64_t order;
    uint64_t tag;
    Due what;
    bool operator>(const Timer& o) const {
      return when != o.when ? when > o.when : order > o.order;
    }
  };
  void push(std::vector<Timer>& heap, Timer timer);
  // Handles all timers up to `now` in order.
  void drain(Nanos now);
  // Tells the listener what is due next.
  void announce(const std::vector<Timer>& heap) const;
  void find_demand(const std::vector<Constraint>& constraints);
  void end_free_flow(uint64_t tag);
  // The flow is over: its number can be given again. Returns its tag.
  uint64_t forget(uint32_t flow);
  // A free flow goes on as one that shares.
  void share(uint32_t flow);

  std::vector<BytesPerSec> capacities_;
  std::vector<std::vector<LinkWeight>> routes_;
  std::vector<bool> kept_;
  size_t links_ = 0;  // of the platform; caps come after them
  std::map<std::pair<uint64_t, BytesPerSec>, LinkId> caps_;
  std::vector<FoldedRoute> folded_;
  std::optional<Demand> demand_;
  struct Flow {
    RouteId route = 0;
    uint64_t tag = 0;
    double bytes = 0;
    double since = 0;   // clock() at its start
    double left = 0;    // of one that was halted
    uint32_t turn = 0;  // how often its number was given
    enum class State : uint8_t { kNone, kFree, kShares, kHalted } state = State::kNone;
  };
  std::vector<Flow> flows_;  // by number
  std::vector<uint32_t> unused_;
  std::map<LinkId, std::pair<LinkId, uint32_t>> own_constraint_;  // of kept links: and its divisor
  std::vector<BytesPerSec> constraint_capacity_;                  // as they are now
  std::vector<double> route_bytes_;
  std::vector<Timer> timers_, soft_;                              // heaps
  std::unordered_map<uint64_t, std::vector<RouteId>> route_ids_;  // by hash
  FabricListener* listener_ = nullptr;
  Nanos now_ = 0;
  Nanos slack_ = 0;
  Nanos pause_ = -1;
  uint64_t order_ = 0;
  uint64_t in_flight_ = 0;
  bool stopped_ = false;
  bool too_long_ = false;
  Counters counters_;
};

// A flow would end after the end of time.
[[nodiscard]] Result<void> run_too_long();

[[nodiscard]] std::unique_ptr<Fabric> make_simgrid_fabric(std::vector<BytesPerSec> capacities);
// SimGrid in this process, unused, so that children that are forked from it and each make one such fabric need not start it.
void start_simgrid();
[[nodiscard]] std::unique_ptr<Fabric> make_reference_fabric(std::vector<BytesPerSec> capacities);

}  // namespace rehearse::sim
