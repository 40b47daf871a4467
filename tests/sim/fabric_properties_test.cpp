// SPDX-License-Identifier: Apache-2.0
// No link carries more than its capacity, over any interval of time; what goes in comes out.
#include <algorithm>

#include "sim/fabric/fabric.hpp"
#include "tests/sim/property.hpp"

namespace rehearse::fabric_properties_test {
using namespace rehearse;
using namespace rehearse::sim;

namespace {

struct RandomFlow {
  Nanos start = 0;
  double bytes = 0;
  std::vector<LinkWeight> links;
  Nanos end = -1;
};

class Starter final : public FabricListener {
 public:
  Starter(Fabric& fabric, std::vector<RandomFlow>& flows, const std::vector<RouteId>& routes)
      : fabric_(fabric), flows_(flows), routes_(routes) {
    for (size_t i = 0; i < flows.size(); ++i) fabric.timer(flows[i].start, i);
  }
  void on_timer(uint64_t i) override { fabric_.start(routes_[i], flows_[i].bytes, i); }
  void on_flow_end(uint64_t i) override { flows_[i].end = fabric_.now(); }

 private:
  Fabric& fabric_;
  std::vector<RandomFlow>& flows_;
  const std::vector<RouteId>& routes_;
};

std::vector<RandomFlow> random_flows(size_t links) {
  std::vector<RandomFlow> flows(*tests::in_range<size_t>(1, 12));
  for (RandomFlow& flow : flows) {
    flow.start = *tests::in_range<Nanos>(0, 2'000'000);
    flow.bytes = *tests::in_range(1, 20'000'000);
    const auto used = *rc::gen::container<std::vector<bool>>(links, rc::gen::arbitrary<bool>());
    for (size_t link = 0; link < links; ++link) {
      if (!used[link]) continue;
      flow.links.push_back({static_cast<LinkId>(link), *tests::in_range<uint32_t>(1, 4)});
    }
    if (flow.links.empty()) flow.links.push_back({0, 1});
  }
  return flows;
}

}  // namespace

TEST_CASE("no link carries more than it can between any two moments", "[properties]") {
  tests::holds("capacity", [] {
    std::vector<BytesPerSec> capacity(*tests::in_range<size_t>(1, 6));
    for (BytesPerSec& c : capacity) c = *tests::in_range(1, 400) * 1e8;
    std::vector<RandomFlow> flows = random_flows(capacity.size());
    const auto fabric = make_reference_fabric(capacity);
    std::vector<RouteId> routes;
    for (const RandomFlow& flow : flows) routes.push_back(fabric->add_route(flow.links));
    Starter starter(*fabric, flows, routes);
    RC_ASSERT(fabric->run(starter).has_value());

    std::vector<double> total(capacity.size(), 0);
    for (const RandomFlow& flow : flows) {
      RC_ASSERT(flow.end >= flow.start);
      for (const LinkWeight& use : flow.links) {
        total[use.link] += flow.bytes * use.weight;
        // Nor is a flow faster than its slowest link alone would let it be.
        const double alone = flow.bytes * use.weight / capacity[use.link] * 1e9;
        RC_ASSERT(static_cast<double>(flow.end - flow.start) >= alone * (1 - 1e-9) - 1);
      }
    }
    const std::vector<double> counted = fabric->bytes_by_link();
    for (size_t l = 0; l < capacity.size(); ++l) {
      RC_ASSERT(std::abs(counted[l] - total[l]) <= 1e-6 * total[l] + 1e-3);
    }
    // Flows that began and ended between two moments went through in that time.
    for (const RandomFlow& from : flows) {
      for (const RandomFlow& to : flows) {
        const double seconds = static_cast<double>(to.end - from.start + 1) * 1e-9;
        for (size_t l = 0; l < capacity.size(); ++l) {
          double inside = 0;
          for (const RandomFlow& flow : flows) {
            if (flow.start < from.start || flow.end > to.end) continue;
            for (const LinkWeight& use : flow.links) {
              if (use.link == l) inside += flow.bytes * use.weight;
            }
          }
          if (to.end >= from.start) RC_ASSERT(inside <= capacity[l] * seconds * (1 + 1e-9));
        }
      }
    }
  });
}

}  // namespace rehearse::fabric_properties_test
