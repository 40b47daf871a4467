// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <set>

#include "base/random.hpp"
#include "sim/snapshot/travel.hpp"
#include "tests/sim/job16.hpp"

namespace rehearse::travel_many_test {
using namespace rehearse;
using namespace rehearse::tests;

TEST_CASE("100 journeys to random times see what one whole run showed", "[sim][travel]") {
  sim::Scenario scenario = job16();
  REQUIRE(change(scenario, "{slow-rank: {rank: 5, slowdown: 1.7}, from: 1ms, until: 6ms}"));
  REQUIRE(change(
      scenario, "{set: {\"platform.nodes[1].nics[*].bandwidth\": 40Gbps}, from: 2ms, until: 8ms}"));
  SilentReporter silent;
  const auto whole = sim::simulate(scenario, silent);
  REQUIRE(whole);
  Random random(1, "travel");
  std::set<Nanos> chosen;
  while (chosen.size() < 100) {
    chosen.insert(static_cast<Nanos>(random.below(static_cast<uint64_t>(whole->end_ns()))));
  }
  const std::vector<Nanos> times(chosen.begin(), chosen.end());
  const auto passed = sim::states_at(scenario, times, silent);
  REQUIRE(passed);
  for (size_t i = 0; i < times.size(); ++i) {
    sim::Travel travel;
    travel.to.time = times[i];
    auto seen = sim::state_at(scenario, travel, silent);
    REQUIRE(seen);
    seen->clear_end_ns();
    seen->clear_ended();
    INFO(times[i] << " ns");
    CHECK((seen->SerializeAsString() == (*passed)[i].SerializeAsString()));
  }
}

}  // namespace rehearse::travel_many_test
