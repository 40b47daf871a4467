// SPDX-License-Identifier: Apache-2.0
// Faults are joined into one class only when nothing observable tells them apart.
#include "faults/fault_classes.hpp"

#include <catch2/catch.hpp>

#include "faults/diagnose/likeness.hpp"
#include "faults/diagnose/observable.hpp"
#include "faults/fault_use.hpp"
#include "faults/world.hpp"

namespace rehearse::fault_classes_test {
using namespace rehearse;
using namespace rehearse::faults;

TEST_CASE("faults of one class have observable runs that are equal within noise",
          "[faults][classes]") {
  SilentReporter reporter;
  const auto catalogue = FaultCatalogue::load_shipped();
  const auto classes = FaultClasses::load_shipped();
  REQUIRE(catalogue);
  REQUIRE(classes);
  const World world = simulated_world(reporter);
  for (const pb::FaultClass& row : classes->table().classes()) {
    INFO(row.why());
    REQUIRE(row.alike_size() > 1);
    CHECK_FALSE(row.collect().empty());
    const auto healthy = sim::load_scenario(row.scenario(), reporter);
    REQUIRE(healthy);
    const auto baseline = world.simulate(*healthy);
    REQUIRE(baseline);
    std::vector<Changes> seen;
    std::vector<pb::Verdict> verdicts;
    for (const pb::AlikeFault& fault : row.alike()) {
      INFO(fault.use());
      CHECK(fault.use().starts_with(fault.id()));
      const auto use = parse_fault(fault.use(), *catalogue);
      REQUIRE(use);
      const auto patches = patches_of(*use, healthy->document);
      REQUIRE(patches);
      sim::Scenario broken = *healthy;
      for (const pb::Patch& patch : *patches) REQUIRE(world.apply(broken, patch));
      const auto outcome = world.simulate(broken);
      REQUIRE(outcome);
      seen.push_back(changes_of(observable(*outcome), observable(*baseline)));
      verdicts.push_back(outcome->verdict());
    }
    for (size_t i = 1; i < seen.size(); ++i) {
      INFO(row.alike(0).use() << " and " << row.alike(static_cast<int>(i)).use());
      CHECK(verdicts[i] == verdicts[0]);
      CHECK(likeness(seen[0], seen[i]).score > 0.97);
    }
  }
}

}  // namespace rehearse::fault_classes_test
