// SPDX-License-Identifier: Apache-2.0
// Every fault of the catalogue through the real engine, with its defaults, on the job in which it shows: injected, seen,
// diagnosed without being told, repaired. Labelled slow.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <string>

#include "faults/diagnose/diagnose.hpp"
#include "faults/fix/fix.hpp"
#include "faults/symptoms/classifier.hpp"
#include "faults/world.hpp"

namespace rehearse::every_round_trip_test {
using namespace rehearse;
using namespace rehearse::faults;

namespace {

struct Job {
  sim::Scenario healthy;
  pb::Outcome baseline;
};

const Job& job_of(const pb::Fault& fault, const World& world, Reporter& reporter) {
  static std::map<std::string, Job> jobs;
  const std::string name = fault.scenario().empty() ? "ddp-16" : fault.scenario();
  if (!jobs.count(name)) {
    auto healthy = sim::load_scenario(name, reporter);
    REQUIRE(healthy);
    auto baseline = world.simulate(*healthy);
    REQUIRE(baseline);
    REQUIRE(classify(*baseline).id() == kHealthy);
    jobs[name] = {std::move(*healthy), std::move(*baseline)};
  }
  return jobs[name];
}

}  // namespace

TEST_CASE("every fault is injected, seen, named and repaired to within 2 % of the healthy job",
          "[faults][engine]") {
  SilentReporter reporter;
  const auto catalogue = FaultCatalogue::load_shipped();
  const auto categories = Categories::load_shipped();
  const auto classes = FaultClasses::load_shipped();
  REQUIRE(catalogue);
  REQUIRE(categories);
  REQUIRE(classes);
  CHECK(catalogue->entries().size() >= 77);
  const World world = simulated_world(reporter);
  for (const auto& entry : catalogue->entries()) {
    // One at a time: round_trips_test -c F41.
    SECTION(entry->fault.id()) {
      const Job& job = job_of(entry->fault, world, reporter);
      sim::Scenario broken = job.healthy;
      const FaultUse injected = with_defaults(entry);
      INFO(injected.text());
      const auto patches = patches_of(injected, broken.document);
      REQUIRE(patches);
      for (const pb::Patch& patch : *patches) REQUIRE(world.apply(broken, patch));
      auto evidence = world.simulate(broken);
      REQUIRE(evidence);
      const auto diagnosis = diagnose({.evidence = *evidence,
                                       .healthy = job.healthy,
                                       .configured = &broken.document.launch(),
                                       .baseline = &job.baseline,
                                       .classes = &*classes},
                                      *catalogue, world);
      REQUIRE(diagnosis);
      const auto& known = entry->fault.symptoms();
      INFO("symptom " << diagnosis->symptom().id());
      CHECK(std::find(known.begin(), known.end(), diagnosis->symptom().id()) != known.end());
      if (diagnosis->causes_size() == 0) {
        FAIL_CHECK("no cause");
        return;
      }
      const std::string& named = diagnosis->causes(0).fault();
      INFO("first cause " << diagnosis->causes(0).use());
      CHECK((named == entry->fault.id() || classes->joining(named, entry->fault.id())));
      CHECK_FALSE(diagnosis->unknown());
      std::vector<FaultUse> causes;
      for (int i = 0; i < std::min(3, diagnosis->causes_size()); ++i) {
        const auto use = parse_fault(diagnosis->causes(i).use(), *catalogue);
        REQUIRE(use);
        causes.push_back(*use);
      }
      const auto report = try_fixes({.broken = broken,
                                     .outcome = *evidence,
                                     .baseline = job.baseline,
                                     .candidates = causes,
                                     .categories = *categories},
                                    world);
      REQUIRE(report);
      if (report->fixes_size() == 0) {
        FAIL_CHECK("no fix");
        return;
      }
      const pb::FixTrial& best = report->fixes(0);
      INFO("first fix " << best.name() << " of " << best.use() << ", then " << best.symptom().id());
      CHECK(best.restores());
      CHECK(best.symptom().id() == kHealthy);
      const auto healthy_step = static_cast<double>(job.baseline.step_time_ns().mean());
      CHECK(std::abs(static_cast<double>(best.step_time_ns()) / healthy_step - 1) <= 0.02);
    }
  }
}

}  // namespace rehearse::every_round_trip_test
