// SPDX-License-Identifier: Apache-2.0
// Two faults at once, in a world whose step time is a sum.
#include "faults/diagnose/two_causes.hpp"

#include <catch2/catch.hpp>
#include <set>

#include "faults/diagnose/diagnose.hpp"
#include "faults/diagnose/observable.hpp"
#include "faults/diagnose/trial.hpp"
#include "tests/faults/small_world.hpp"

namespace rehearse::two_causes_test {
using namespace rehearse;
using namespace rehearse::faults;

namespace {

pb::Diagnosis diagnosis_of(std::initializer_list<const char*> faults, uint32_t of_two = 140) {
  static const auto catalogue = FaultCatalogue::load_shipped();
  REQUIRE(catalogue);
  const World world = testing::small_world();
  const sim::Scenario healthy = testing::small_scenario();
  sim::Scenario broken = healthy;
  for (const char* fault : faults) {
    const auto patches = patches_of(*parse_fault(fault, *catalogue), broken.document);
    REQUIRE(patches);
    for (const pb::Patch& patch : *patches) REQUIRE(world.apply(broken, patch));
  }
  const pb::Outcome evidence = *world.simulate(broken), baseline = *world.simulate(healthy);
  const auto found = diagnose({.evidence = evidence,
                               .healthy = healthy,
                               .configured = &broken.document.launch(),
                               .baseline = &baseline,
                               .max_simulations_of_two = of_two},
                              *catalogue, world);
  REQUIRE(found);
  return *found;
}

std::set<std::string> first_two(const pb::Diagnosis& diagnosis) {
  REQUIRE(diagnosis.causes_size() >= 2);
  return {diagnosis.causes(0).fault(), diagnosis.causes(1).fault()};
}

}  // namespace

TEST_CASE("two faults at once are both named, each with its own evidence", "[faults][diagnose]") {
  const pb::Diagnosis diagnosis = diagnosis_of({"F16:node=1", "F60:rank=3,factor=2.2"});
  CHECK(first_two(diagnosis) == std::set<std::string>{"F16", "F60"});
  CHECK_FALSE(diagnosis.unknown());
  for (int i = 0; i < 2; ++i) {
    const pb::Cause& cause = diagnosis.causes(i);
    INFO(cause.use());
    CHECK(cause.score() > 0.9);
    REQUIRE(cause.together_size() == 1);
    CHECK(cause.together(0) == diagnosis.causes(1 - i).use());
    CHECK(cause.evidence_size() > 1);
    REQUIRE(cause.culprits_size() == 1);
    if (cause.fault() == "F60") CHECK(cause.culprits(0).rank() == 3);
    if (cause.fault() == "F16") CHECK(cause.culprits(0).node() == 1);
  }
}

TEST_CASE("the strengths of two faults are both fitted", "[faults][diagnose]") {
  const pb::Diagnosis diagnosis = diagnosis_of({"F37:node=0", "F60:rank=11,factor=1.6"});
  CHECK(first_two(diagnosis) == std::set<std::string>{"F37", "F60"});
  for (const pb::Cause& cause : diagnosis.causes()) {
    if (cause.fault() != "F60" || cause.together().empty()) continue;
    const double factor = std::stod(cause.use().substr(cause.use().find("factor=") + 7));
    CHECK(factor == Approx(1.6).epsilon(0.1));
  }
}

TEST_CASE("what is tried beside a cause is tried in the job that has it", "[faults][diagnose]") {
  const auto catalogue = FaultCatalogue::load_shipped();
  REQUIRE(catalogue);
  const World world = testing::small_world();
  const sim::Scenario healthy = testing::small_scenario();
  const pb::Outcome baseline = observable(*world.simulate(healthy));
  const Changes nothing;
  Laboratory laboratory(healthy, baseline, {.outcome = baseline, .changes = nothing}, world, 10);
  const FaultUse sockets = *parse_fault("F16:node=1", *catalogue);
  const FaultUse slow = *parse_fault("F60:rank=3,factor=2", *catalogue);
  const auto alone = laboratory.once(slow);
  laboratory.beside(sockets);
  const auto beside = laboratory.once(slow);
  laboratory.beside(std::nullopt);
  const auto again = laboratory.once(slow);
  const auto both = laboratory.both(sockets, slow);
  REQUIRE(alone);
  REQUIRE(beside);
  REQUIRE(again);
  REQUIRE(both);
  CHECK(alone->size == Approx(100.0 / 120));
  CHECK(beside->size == Approx(240.0 / 120));
  CHECK(beside->use.text() == slow.text());
  CHECK(again->size == alone->size);
  CHECK(both->size == beside->size);
  CHECK(laboratory.simulations() == 2);
}

TEST_CASE("one fault is not taken for two", "[faults][diagnose]") {
  for (const char* fault : {"F16:node=1", "F60:rank=3,factor=2.2", "F37:node=0"}) {
    INFO(fault);
    const pb::Diagnosis diagnosis = diagnosis_of({fault});
    REQUIRE(diagnosis.causes_size() > 0);
    for (const pb::Cause& cause : diagnosis.causes()) CHECK(cause.together().empty());
  }
}

TEST_CASE("two causes are not looked for when nobody asks", "[faults][diagnose]") {
  const pb::Diagnosis diagnosis = diagnosis_of({"F16:node=1", "F60:rank=3,factor=2.2"}, 0);
  for (const pb::Cause& cause : diagnosis.causes()) CHECK(cause.together().empty());
}

}  // namespace rehearse::two_causes_test
