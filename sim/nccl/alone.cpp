// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <map>

#include "sim/efficiency.hpp"
#include "sim/nccl/testbed.hpp"

namespace rehearse::sim {
namespace {

// Starts all flows at time 0.
struct Start : FabricListener {
  explicit Start(Fabric& on) : fabric(on) {}
  void on_timer(uint64_t) override {
    for (const auto& [route, bytes] : routes) fabric.start(route, bytes, 0);
  }
  void on_flow_end(uint64_t) override {}
  Fabric& fabric;
  std::vector<std::pair<RouteId, double>> routes;
};

Nanos nanos(double seconds) {
  return static_cast<Nanos>(std::nearbyint(std::min(seconds, 1e9) * 1e9));
}

}  // namespace

Result<AloneTime> time_alone(const ModelContext& context, const CallTraffic& traffic) {
  AloneTime out;
  out.latency = traffic.latency;
  const TimeParameters parameters = time_parameters(context.platform.efficiency());
  if (traffic.latency > 0) out.issue = nanos(issue_us(traffic.terms, parameters) * 1e-6);
  if (traffic.flows.empty()) return out;

  // Only the links that are used take part: the fabric's cost follows theirs.
  std::map<LinkId, double> load;
  for (const FlowLoad& flow : traffic.flows) {
    for (const LinkWeight& use : flow.links) load[use.link] += flow.bytes * use.weight;
    if (flow.cap > 0) out.capped = std::max(out.capped, nanos(flow.bytes / flow.cap));
  }
  std::map<LinkId, LinkId> renamed;
  std::vector<BytesPerSec> capacities;
  std::map<platforms::LinkKind, AloneTime::Bound> slowest;
  for (const auto& [link, bytes] : load) {
    renamed[link] = static_cast<LinkId>(capacities.size());
    const double capacity = effective_capacity(context.platform, context.links[link]);
    capacities.push_back(capacity);
    out.stalled |= capacity <= 0;
    const Nanos time = capacity > 0 ? nanos(bytes / capacity) : kEndOfTime;
    AloneTime::Bound& bound = slowest[context.links[link].kind];
    if (bound.link == platforms::kNoLink || time > bound.time) {
      bound = {link, bytes, capacity, time};
    }
  }
  for (const auto& [kind, bound] : slowest) out.links.push_back(bound);
  std::stable_sort(out.links.begin(), out.links.end(),
                   [](const auto& a, const auto& b) { return a.time > b.time; });
  if (out.stalled) {
    out.transfer = kEndOfTime;
    return out;
  }

  const std::unique_ptr<Fabric> fabric = make_reference_fabric(std::move(capacities));
  Start start(*fabric);
  for (const FlowLoad& flow : traffic.flows) {
    std::vector<LinkWeight> links;
    for (const LinkWeight& use : flow.links) links.push_back({renamed[use.link], use.weight});
    start.routes.emplace_back(fabric->add_route(links, {flow.cap, flow.pair}), flow.bytes);
  }
  fabric->timer(0, 0);
  if (auto done = fabric->run(start); !done) return tl::unexpected(done.error());
  out.transfer = fabric->now();
  return out;
}

TimeTerms terms_of(const ModelContext& context, const CallTraffic& traffic) {
  TimeTerms terms = traffic.terms;
  const TimeParameters parameters = time_parameters(context.platform.efficiency());
  const double rate = parameters.rate[index_of(terms.protocol)];
  const bool nvls = traffic.algorithm.starts_with("NVLS");
  std::map<LinkId, double> load, reduced;
  for (size_t f = 0; f < traffic.flows.size(); ++f) {
    // In-switch reduction is the first flow of its algorithms; what follows crosses nodes.
    auto& on = nvls && f == 0 ? reduced : load;
    for (const LinkWeight& use : traffic.flows[f].links) {
      on[use.link] += traffic.flows[f].bytes * use.weight * rate;
    }
  }
  const auto us = [&](LinkId link, double bytes) {
    const BytesPerSec capacity = context.links[link].capacity;
    return capacity > 0 ? bytes / capacity * 1e6 : 0;
  };
  for (const auto& [link, bytes] : load) {
    double& slowest = terms.links_us[index_of(context.links[link].kind)];
    slowest = std::max(slowest, us(link, bytes));
  }
  const double share = parameters.nvls_share > 0 ? parameters.nvls_share : terms.nvls_prior;
  for (const auto& [link, bytes] : reduced) {
    terms.nvls_us = std::max(terms.nvls_us, us(link, bytes * share));
  }
  return terms;
}

}  // namespace rehearse::sim
