// SPDX-License-Identifier: Apache-2.0
// Faults through the real engine: injected, diagnosed without being told, repaired.
#include <catch2/catch.hpp>
#include <string>

#include "faults/diagnose/diagnose.hpp"
#include "faults/fix/fix.hpp"
#include "faults/symptoms/classifier.hpp"
#include "faults/world.hpp"

namespace rehearse::round_trip_test {
using namespace rehearse;
using namespace rehearse::faults;

namespace {

struct Round {
  std::string scenario, fault, symptom;
};

}  // namespace

TEST_CASE("a fault injected into a shipped job is named, placed and repaired", "[faults][engine]") {
  SilentReporter reporter;
  const auto catalogue = FaultCatalogue::load_shipped();
  const auto categories = Categories::load_shipped();
  REQUIRE(catalogue);
  REQUIRE(categories);
  const World world = simulated_world(reporter);
  const Round rounds[] = {
      {"ddp-16", "F16:node=1", "B3"},
      {"ddp-16", "F21:rank=5,nth=3", "D2.1"},
      {"ddp-16", "F37:node=0", "B3"},
      {"ddp-16", "F60:rank=11,factor=1.7", "D2.2"},
      {"ddp-16", "F62:node=1,speed=0.6", "D2.2"},
      {"moe-16", "F16:node=0", "B3"},
      {"moe-16", "F63:node=1,nic=0,at=100ms", "D1.1"},
      {"moe-16", "F65:node=1,nic=0,bandwidth=25Gbps", "D2.2"},
      {"moe-16", "F66:node=1,gpu=3,generation=1,width=1", "D2.2"},
  };
  for (const Round& round : rounds) {
    INFO(round.scenario << " " << round.fault);
    const auto healthy = sim::load_scenario(round.scenario, reporter);
    REQUIRE(healthy);
    const auto baseline = world.simulate(*healthy);
    REQUIRE(baseline);
    CHECK(classify(*baseline).id() == kHealthy);
    sim::Scenario broken = *healthy;
    const auto injected = parse_fault(round.fault, *catalogue);
    REQUIRE(injected);
    const auto patches = patches_of(*injected, broken.document);
    REQUIRE(patches);
    for (const pb::Patch& patch : *patches) REQUIRE(world.apply(broken, patch));
    const auto evidence = world.simulate(broken);
    REQUIRE(evidence);
    const auto diagnosis = diagnose({.evidence = *evidence,
                                     .healthy = *healthy,
                                     .configured = &broken.document.launch(),
                                     .baseline = &*baseline},
                                    *catalogue, world);
    REQUIRE(diagnosis);
    CHECK(diagnosis->symptom().id() == round.symptom);
    REQUIRE(diagnosis->causes_size() > 0);
    const auto found = parse_fault(diagnosis->causes(0).use(), *catalogue);
    REQUIRE(found);
    CHECK(found->fault().id() == injected->fault().id());
    for (const pb::Parameter& p : injected->fault().parameters()) {
      if (!p.strength() && p.kind() != pb::Parameter::MOMENT)
        CHECK(found->values.at(p.name()) == injected->values.at(p.name()));
    }
    const FaultUse uses[] = {*found};
    const auto report = try_fixes({.broken = broken,
                                   .outcome = *evidence,
                                   .baseline = *baseline,
                                   .candidates = uses,
                                   .categories = *categories},
                                  world);
    REQUIRE(report);
    REQUIRE(report->fixes_size() > 0);
    CHECK(report->fixes(0).restores());
  }
}

}  // namespace rehearse::round_trip_test
