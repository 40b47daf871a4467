// SPDX-License-Identifier: Apache-2.0
#include "sim/replay/shapes.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "sim/replay/contention.hpp"
#include "sim/replay/meetings.hpp"

namespace rehearse::sim {
namespace {

class Declarer {
 public:
  Declarer(const traces::Program& program, const ReplayOptions& options, Fabric& fabric,
           LinkUsers& users, Replayed& out)
      : program_(program), options_(options), fabric_(fabric), users_(users), out_(out) {}

  Result<std::vector<DeclaredShape>> declare() {
    out_.shape_of.assign(out_.meetings.size(), UINT32_MAX);
    // By communicator: large jobs have thousands of them, each with a few shapes.
    std::vector<std::map<std::tuple<int, Bytes, Bytes, int, int, int, uint32_t>, uint32_t>> known(
        program_.communicators.size());
    for (size_t id = 0; id < out_.meetings.size(); ++id) {
      if (out_.calls_begin[id] == out_.calls_begin[id + 1]) continue;
      const MeetingCall first = out_.calls_of[out_.calls_begin[id]];
      const traces::RankProgram& rank = program_.ranks[first.rank];
      const auto [call, member] = as_sent(rank.calls[first.call], rank.rank);
      const auto key = std::make_tuple(static_cast<int>(call.collective), call.bytes_in,
                                       call.bytes_out, static_cast<int>(call.dtype),
                                       static_cast<int>(call.reduction), call.peer, member);
      const auto [at, fresh] =
          known[call.communicator].emplace(key, static_cast<uint32_t>(shapes_.size()));
      out_.shape_of[id] = at->second;
      if (!fresh) continue;
      RH_TRY(const CallTraffic traffic, options_.traffic(call, member));
      add(call, member, traffic);
      if (!options_.messages || is_instant(call)) continue;
      RH_TRY(const MessagePlan plan, options_.messages(call, member));
      shapes_.back().plan = declare_plan(plan, call.communicator);
      // Messages fill their pipeline themselves.
      if (!plan.messages.empty()) shapes_.back().latency -= traffic.fill;
    }
    return std::move(shapes_);
  }

 private:
  // A recv as its sender sees it, and the member who sends; collectives as they are.
  [[nodiscard]] std::pair<traces::Call, uint32_t> as_sent(traces::Call call,
                                                          traces::RankId rank) const {
    if (!traces::is_point_to_point(call.collective)) return {call, 0};
    auto self = static_cast<int32_t>(
        std::max(0, member_index(program_.communicators[call.communicator], rank)));
    if (call.collective == traces::Collective::kRecv) {
      call.collective = traces::Collective::kSend;
      std::swap(self, call.peer);
    }
    call.bytes_in = call.bytes_out = std::max(call.bytes_in, call.bytes_out);
    return {call, static_cast<uint32_t>(std::max(0, self))};
  }

  [[nodiscard]] bool is_instant(const traces::Call& call) const {
    return options_.instant && options_.instant(call);
  }

  RouteId route(const FlowLoad& flow, uint32_t communicator) {
    users_.add(flow.links, communicator);
    return fabric_.add_route(flow.links, {flow.cap, uint64_t{flow.pair} << 32 | communicator});
  }

  void add(const traces::Call& call, uint32_t member, const CallTraffic& traffic) {
    DeclaredShape shape;
    shape.latency = traffic.latency;
    shape.credit = traffic.credit;
    shape.bytes = traffic.hop_bytes;
    Replayed::Shape report;
    report.communicator = call.communicator;
    report.call = call;
    report.member = member;
    report.channels = traffic.channels;
    report.algorithm = traffic.algorithm;
    report.bus_bytes = traffic.bus_bytes;
    report.dissent = traffic.dissent;
    report.dissenters = traffic.dissenters;
    shape.planned_apart = !traffic.dissent.empty();
    report.bytes = static_cast<double>(std::max(call.bytes_in, call.bytes_out));
    double slowest = 0;
    for (const FlowLoad& flow : traffic.flows) {
      shape.flows.emplace_back(route(flow, call.communicator), flow.bytes);
      for (const LinkWeight& use : flow.links) {
        const double capacity = options_.capacity[use.link];
        const double time = flow.bytes * use.weight / capacity;
        if (time > slowest) {
          slowest = time;
          report.bottleneck = use.link;
        }
      }
    }
    for (const HopLoad& hop : traffic.hops) {
      shape.hops.push_back({hop.from, hop.to, route(hop.load, call.communicator), hop.load.bytes});
    }
    contend(call, traffic, shape);
    if (is_instant(call)) {
      shape.latency = 0;
      shape.flows.clear();
      for (DeclaredHop& hop : shape.hops) hop.bytes = 0;
    }
    shapes_.push_back(std::move(shape));
    out_.shapes.push_back(std::move(report));
  }

  DeclaredPlan declare_plan(const MessagePlan& plan, uint64_t communicator) {
    std::vector<RouteId> routes;
    for (const FlowLoad& load : plan.routes) {
      // The cap is of each connection: an owner of its own.
      const uint64_t owner = uint64_t{1} << 63 | communicator << 32 | routes.size();
      routes.push_back(fabric_.add_route(load.links, {load.cap, owner}));
    }
    DeclaredPlan out;
    out.per_hop = plan.per_hop;
    const size_t n = plan.messages.size();
    out.waits.assign(n, 0);
    out.next_begin.assign(n + 1, 0);
    for (size_t m = 0; m < n; ++m) {
      out.route.push_back(routes[plan.messages[m].route]);
      out.bytes.push_back(plan.messages[m].bytes);
      out.waits[m] = plan.after_begin[m + 1] - plan.after_begin[m];
    }
    for (uint32_t before : plan.after) ++out.next_begin[before + 1];
    for (size_t m = 0; m < n; ++m) out.next_begin[m + 1] += out.next_begin[m];
    out.next.resize(plan.after.size());
    std::vector<uint32_t> at(out.next_begin.begin(), out.next_begin.end() - 1);
    for (uint32_t m = 0; m < n; ++m) {
      for (uint32_t i = plan.after_begin[m]; i < plan.after_begin[m + 1]; ++i) {
        out.next[at[plan.after[i]]++] = m;
      }
    }
    return out;
  }

  void contend(const traces::Call& call, const CallTraffic& traffic, DeclaredShape& shape) const {
    const auto& members = program_.communicators[call.communicator].members;
    if (options_.gpus.empty() || members.empty()) return;
    const int r = program_.find(members.front());
    if (r < 0) return;
    shape.share_of_kernels =
        share_of_kernels(traffic, options_.capacity, options_.gpus[static_cast<size_t>(r)]);
  }

  const traces::Program& program_;
  const ReplayOptions& options_;
  Fabric& fabric_;
  LinkUsers& users_;
  Replayed& out_;
  std::vector<DeclaredShape> shapes_;
};

}  // namespace

Nanos crossing_since(const Replayed& replayed, std::span<const DeclaredShape> shapes,
                     const Fabric& fabric, LinkId link) {
  Nanos since = -1;
  for (size_t id = 0; id < replayed.meetings.size(); ++id) {
    const Meeting& meeting = replayed.meetings[id];
    if (meeting.arrived < meeting.expected || meeting.end >= 0 || meeting.mismatch) continue;
    const DeclaredShape& shape = shapes[replayed.shape_of[id]];
    const Nanos began = meeting.last_arrival + shape.latency;
    if (began > fabric.now() || (since >= 0 && since <= began)) continue;
    if (std::any_of(shape.flows.begin(), shape.flows.end(),
                    [&](const auto& flow) { return fabric.crosses(flow.first, link); })) {
      since = began;
    }
  }
  return since;
}

Result<std::vector<DeclaredShape>> declare_shapes(const traces::Program& program,
                                                  const ReplayOptions& options, Fabric& fabric,
                                                  LinkUsers& users, Replayed& out) {
  return Declarer(program, options, fabric, users, out).declare();
}

}  // namespace rehearse::sim
