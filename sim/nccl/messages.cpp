// SPDX-License-Identifier: Apache-2.0
#include "sim/nccl/messages.hpp"

#include <algorithm>
#include <map>

#include "sim/nccl/graphs.hpp"
#include "sim/nccl/loads.hpp"
#include "sim/nccl/model.hpp"
#include "sim/nccl/placement.hpp"

namespace rehearse::sim {
namespace {

using traces::Collective;

uint32_t root_of(const traces::Call& call, size_t members) {
  return std::min(static_cast<uint32_t>(std::max(0, call.peer)),
                  static_cast<uint32_t>(members - 1));
}

// Channels that cross the same links edge by edge move together, as weight.
struct Lane {
  std::vector<Loads::Edge> edges;
  uint32_t weight = 0;
};

template <typename EdgesOf>
std::vector<Lane> lanes(int channels, const EdgesOf& edges_of) {
  std::vector<Lane> out;
  for (int c = 0; c < channels; ++c) {
    std::vector<Loads::Edge> edges = edges_of(c);
    const auto same = std::find_if(out.begin(), out.end(), [&](const Lane& lane) {
      return std::equal(lane.edges.begin(), lane.edges.end(), edges.begin(), edges.end(),
                        [](const Loads::Edge& x, const Loads::Edge& y) {
                          return x.from == y.from && x.to == y.to && x.links == y.links;
                        });
    });
    if (same == out.end()) {
      out.push_back({std::move(edges), 1});
    } else {
      ++same->weight;
    }
  }
  return out;
}

std::vector<LinkWeight> weighted(std::vector<LinkWeight> links, uint32_t weight) {
  for (LinkWeight& use : links) use.weight *= weight;
  return links;
}

class Planner {
 public:
  Planner(const ModelContext& context, const CommunicatorModel& model, const CallTraffic& traffic)
      : traffic_(traffic),
        loads_(context, model.placement(), model.graphs(), traffic.queues),
        members_(model.placement().members.size()) {}

  MessagePlan plan(const traces::Call& call) {
    switch (call.collective) {
      case Collective::kAllToAll:
        pairs();
        break;
      case Collective::kBroadcast:
      case Collective::kReduce:
        chain();
        break;
      case Collective::kGather:
      case Collective::kScatter:
      case Collective::kSend:
      case Collective::kRecv:
        break;  // made of hops already
      default:
        if (traffic_.algorithm.starts_with("COLLNET")) {
          for (const FlowLoad& flow : traffic_.flows) add_flow(flow);
        } else if (traffic_.algorithm.starts_with("NVLS")) {
          switches();
        } else if (traffic_.algorithm.starts_with("PAT")) {
          blocks(call.collective == Collective::kAllGather ? Function::kAllGather
                                                           : Function::kReduceScatter);
        } else if (traffic_.algorithm.starts_with("RING")) {
          rings(call.collective == Collective::kAllGather ||
                        call.collective == Collective::kReduceScatter
                    ? members_ - 1
                    : 2 * (members_ - 1));
        } else {
          trees();
        }
    }
    out_.after_begin.push_back(static_cast<uint32_t>(out_.after.size()));
    return std::move(out_);
  }

 private:
  uint32_t add_route(std::vector<LinkWeight> links, BytesPerSec cap) {
    FlowLoad load;
    load.links = std::move(links);
    load.cap = cap;
    out_.routes.push_back(std::move(load));
    return static_cast<uint32_t>(out_.routes.size() - 1);
  }

  void add_message(uint32_t from, uint32_t to, uint32_t route, double bytes) {
    out_.after_begin.push_back(static_cast<uint32_t>(out_.after.size()));
    out_.messages.push_back({from, to, route, bytes});
  }

  // Step s of position p: after p has received what it passes on and has sent step s - 1.
  void rings(size_t steps) {
    const FlowLoad& flow = traffic_.flows.front();
    const double bytes = flow.bytes / static_cast<double>(steps);
    const auto n = static_cast<uint32_t>(members_);
    const auto ring = [&](int channel) { return loads_.ring_edges(channel); };
    for (const Lane& lane : lanes(traffic_.channels, ring)) {
      const std::vector<Loads::Edge>& edges = lane.edges;
      const auto first_route = static_cast<uint32_t>(out_.routes.size());
      for (const Loads::Edge& edge : edges) add_route(weighted(edge.links, lane.weight), flow.cap);
      const auto first = static_cast<uint32_t>(out_.messages.size());
      for (uint32_t s = 0; s < steps; ++s) {
        for (uint32_t p = 0; p < n; ++p) {
          add_message(edges[p].from, edges[p].to, first_route + p, bytes);
          if (s == 0) continue;
          const uint32_t before = first + (s - 1) * n;
          out_.after.push_back(before + p);
          if (n > 1) out_.after.push_back(before + (p + n - 1) % n);
        }
      }
    }
  }

  // The messages of one edge: what is passed on at a time first, then the rest as it comes, and the last part.
  [[nodiscard]] std::vector<double> parts(double bytes) const {
    const double part = traffic_.part;
    if (!(part > 0) || bytes <= part) return {bytes};
    if (bytes <= 2 * part) return {part, bytes - part};
    return {part, bytes - 2 * part, part};
  }

  // Each message waits for the one before it on its edge. The first and the last wait for their likes on the edges
  // `before`; what is between moves while it comes in. Over edges of equal speed that takes as long as passing on part
  // after part, at a cost that does not grow with their number.
  void pipeline(const std::vector<uint32_t>& routes, const std::vector<Loads::Edge>& edges,
                const std::vector<std::vector<uint32_t>>& before,
                const std::vector<double>& bytes) {
    const auto first = static_cast<uint32_t>(out_.messages.size());
    const auto k = static_cast<uint32_t>(bytes.size());
    for (uint32_t e = 0; e < edges.size(); ++e) {
      for (uint32_t c = 0; c < k; ++c) {
        add_message(edges[e].from, edges[e].to, routes[e], bytes[c]);
        if (c > 0) out_.after.push_back(first + e * k + c - 1);
        if (!(traffic_.part > 0) || (k == 3 && c == 1)) continue;
        for (uint32_t b : before[e]) out_.after.push_back(first + b * k + c);
      }
    }
  }

  // The edges of a tree come in pairs, up and down. Up waits for what comes from below, down for what comes from
  // above, at the root for all that comes from below.
  void tree_lane(const Lane& lane, const FlowLoad& flow) {
    std::map<uint32_t, std::vector<uint32_t>> up_into;  // by member
    std::map<uint32_t, uint32_t> down_into;
    std::vector<uint32_t> routes;
    for (uint32_t e = 0; e < lane.edges.size(); ++e) {
      routes.push_back(add_route(weighted(lane.edges[e].links, lane.weight), flow.cap));
      if (e % 2 == 0) {
        up_into[lane.edges[e].to].push_back(e);
      } else {
        down_into[lane.edges[e].to] = e;
      }
    }
    std::vector<std::vector<uint32_t>> before(lane.edges.size());
    for (uint32_t e = 0; e < lane.edges.size(); ++e) {
      const uint32_t from = lane.edges[e].from;
      const auto above = down_into.find(from);
      if (e % 2 == 1 && above != down_into.end()) {
        before[e] = {above->second};
      } else if (const auto below = up_into.find(from); below != up_into.end()) {
        before[e] = below->second;
      }
    }
    pipeline(routes, lane.edges, before, parts(flow.bytes));
  }

  // In-network reduction forwards data as it comes: the flow is its message.
  void add_flow(const FlowLoad& flow) {
    add_message(0, 0, add_route(flow.links, flow.cap), flow.bytes);
  }

  void trees() {
    const auto tree = [&](int channel) { return loads_.tree_edges(channel, false); };
    for (const Lane& lane : lanes(traffic_.channels, tree)) {
      tree_lane(lane, traffic_.flows.front());
    }
  }

  // PAT: all-gather from the farthest rank to the nearest, reduce-scatter the other way; at each
  // distance a rank passes on what it has got at the distances before.
  void blocks(Function function) {
    double unit = 1;
    (void)loads_.pat(traffic_.channels, function, unit);
    const FlowLoad& flow = traffic_.flows.front();
    const auto n = static_cast<uint32_t>(members_);
    const int dimensions = pat_dimensions(n);
    for (int channel = 0; channel < traffic_.channels; ++channel) {
      std::vector<std::vector<uint32_t>> arrived(members_);
      for (int i = 0; i < dimensions; ++i) {
        const int dimension = function == Function::kAllGather ? dimensions - 1 - i : i;
        const double bytes = flow.bytes / unit * pat_blocks(n, dimension);
        std::vector<std::pair<uint32_t, uint32_t>> sent;  // receiver and message
        for (const Loads::Edge& edge : loads_.pat_edges(channel, dimension, function)) {
          sent.emplace_back(edge.to, static_cast<uint32_t>(out_.messages.size()));
          add_message(edge.from, edge.to, add_route(edge.links, flow.cap / unit), bytes);
          const auto& before = arrived[edge.from];
          out_.after.insert(out_.after.end(), before.begin(), before.end());
        }
        for (const auto& [to, message] : sent) arrived[to].push_back(message);
      }
    }
  }

  // All channels of a broadcast or reduce, hop by hop.
  void chain() {
    std::vector<Loads::Edge> edges;
    std::vector<uint32_t> routes;
    std::vector<std::vector<uint32_t>> before;
    for (const HopLoad& hop : traffic_.hops) {
      edges.push_back({hop.from, hop.to, {}});
      routes.push_back(add_route(hop.load.links, hop.load.cap));
      before.emplace_back();
      if (edges.size() > 1) before.back() = {static_cast<uint32_t>(edges.size() - 2)};
    }
    const std::vector<double> bytes = parts(traffic_.flows.front().bytes);
    pipeline(routes, edges, before, bytes);
    out_.per_hop = static_cast<uint32_t>(bytes.size());
  }

  // Each GPU talks to its switch; nodes are joined by trees, or by switches that reduce.
  void switches() {
    const FlowLoad& flow = traffic_.flows.front();
    for (size_t i = 0; i + 1 < flow.links.size(); i += 2) {
      add_message(0, 0, add_route({flow.links[i], flow.links[i + 1]}, flow.cap), flow.bytes);
    }
    if (traffic_.flows.size() < 2) return;
    if (!traffic_.algorithm.starts_with("NVLS_TREE")) {
      for (size_t f = 1; f < traffic_.flows.size(); ++f) add_flow(traffic_.flows[f]);
      return;
    }
    const auto tree = [&](int channel) { return loads_.tree_edges(channel, true); };
    for (const Lane& lane : lanes(traffic_.channels, tree)) {
      tree_lane(lane, traffic_.flows[1]);
    }
  }

  void pairs() {
    // The fluid flow counts pairs in units (Loads::all_pairs); its bytes and cap are of one unit.
    double unit = 1;
    (void)loads_.all_pairs(unit);
    const FlowLoad& flow = traffic_.flows.front();
    for (uint32_t a = 0; a < members_; ++a) {
      for (uint32_t b = 0; b < members_; ++b) {
        if (a == b) continue;
        add_message(a, b, add_route(loads_.exchange(a, b), flow.cap / unit / traffic_.queues.units),
                    flow.bytes / unit / traffic_.queues.units);
      }
    }
  }

  const CallTraffic& traffic_;
  Loads loads_;
  size_t members_;
  MessagePlan out_;
};

MessagePlan flows_as_messages(const CallTraffic& traffic) {
  MessagePlan out;
  for (const FlowLoad& flow : traffic.flows) {
    Message message;
    message.route = static_cast<uint32_t>(out.routes.size());
    message.bytes = flow.bytes;
    out.messages.push_back(message);
    out.after_begin.push_back(0);
    out.routes.push_back(flow);
  }
  out.after_begin.push_back(0);
  return out;
}

// Each connection has a cap of its own.
uint32_t pair_number(const HopLoad& hop, size_t members) {
  return hop.from * static_cast<uint32_t>(members) + hop.to + 1;
}

// Members in the order the data of a broadcast or reduce passes them, and the hops between them:
// hop i of the chain is the i-th hop of every channel's ring, counted from the root of the first.
void chain(const ModelContext& context, const CommunicatorModel& model, const traces::Call& call,
           CallTraffic& traffic) {
  const Loads loads(context, model.placement(), model.graphs(), traffic.queues);
  const size_t n = model.placement().members.size();
  const uint32_t root = root_of(call, n);
  std::vector<std::vector<Loads::Edge>> rings;
  rings.reserve(static_cast<size_t>(std::max(0, traffic.channels)));
  for (int c = 0; c < traffic.channels; ++c) rings.push_back(loads.ring_edges(c));
  size_t at = 0;
  while (at < n && rings[0][at].from != root) ++at;
  if (call.collective == Collective::kReduce) ++at;  // the root comes last
  const FlowLoad& whole = traffic.flows.front();
  for (size_t i = 0; i + 1 < n; ++i) {
    HopLoad hop;
    hop.from = rings[0][(at + i) % n].from;
    hop.to = rings[0][(at + i) % n].to;
    for (const auto& ring : rings) {
      const auto& links = ring[(at + i) % n].links;
      hop.load.links.insert(hop.load.links.end(), links.begin(), links.end());
    }
    hop.load.bytes = whole.bytes;
    hop.load.cap = whole.cap;
    hop.load.pair = pair_number(hop, n);
    traffic.hops.push_back(std::move(hop));
  }
}

void star(const ModelContext& context, const CommunicatorModel& model, const traces::Call& call,
          CallTraffic& traffic) {
  const Loads loads(context, model.placement(), model.graphs(), traffic.queues);
  const auto n = static_cast<uint32_t>(model.placement().members.size());
  const uint32_t root = root_of(call, n);
  const FlowLoad& whole = traffic.flows.front();
  for (uint32_t m = 0; m < n; ++m) {
    if (m == root) continue;
    HopLoad hop;
    hop.from = call.collective == Collective::kGather ? m : root;
    hop.to = call.collective == Collective::kGather ? root : m;
    hop.load = whole;
    hop.load.links = loads.pair(hop.from, hop.to, 1);
    hop.load.pair = pair_number(hop, n);
    traffic.hops.push_back(std::move(hop));
  }
}

}  // namespace

Result<MessagePlan> message_plan(const ModelContext& context, const CommunicatorModel& model,
                                 const traces::Call& call, uint32_t member) {
  RH_TRY(CallTraffic traffic, model.traffic(call, member));
  if (traffic.flows.empty()) return MessagePlan{};
  // Libraries on hosts have no rings to follow: their flows are their messages.
  if (model.graphs().rings.empty()) return flows_as_messages(traffic);
  add_hops(context, model, call, member, traffic);
  return Planner(context, model, traffic).plan(call);
}

void add_hops(const ModelContext& context, const CommunicatorModel& model, const traces::Call& call,
              uint32_t member, CallTraffic& traffic) {
  if (traffic.flows.empty()) return;
  const Settings& settings = model.nccl().settings;
  const auto payload = [&](const char* protocol) -> double {
    if (std::string_view(protocol) == "LL") return 0.5;  // half of LL's lines are flags
    return 1;
  };
  const auto slash = traffic.algorithm.find('/');
  const std::string protocol =
      slash == std::string::npos ? "SIMPLE" : traffic.algorithm.substr(slash + 1);
  const size_t p = protocol == "LL" ? 0 : protocol == "LL128" ? 1 : 2;
  traffic.credit = static_cast<Bytes>(static_cast<double>(settings.buffer_bytes[p]) *
                                      payload(protocol.c_str()) * std::max(1, traffic.channels));
  traffic.hop_bytes = std::max(call.bytes_in, call.bytes_out);
  // Libraries on hosts have no rings and trees here: their members leave rooted calls together.
  if (model.graphs().rings.empty() && !traces::is_point_to_point(call.collective)) return;
  switch (call.collective) {
    case Collective::kBroadcast:
    case Collective::kReduce:
      return chain(context, model, call, traffic);
    case Collective::kGather:
    case Collective::kScatter:
      traffic.hop_bytes = static_cast<Bytes>(traffic.flows.front().bytes);
      return star(context, model, call, traffic);
    case Collective::kSend:
    case Collective::kRecv: {
      HopLoad hop;
      hop.from = member;
      hop.to = static_cast<uint32_t>(std::max(0, call.peer));
      hop.load = traffic.flows.front();
      traffic.hops.push_back(std::move(hop));
      return;
    }
    default:
      return;
  }
}

}  // namespace rehearse::sim
