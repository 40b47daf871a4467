// SPDX-License-Identifier: Apache-2.0
// Every fault of the catalogue through the real engine. Minutes; not part of the fast tests.
#include "faults/coverage.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <string>

#include "faults/fault_use.hpp"
#include "faults/symptoms/classifier.hpp"

namespace rehearse::coverage_test {
using namespace rehearse;
using namespace rehearse::faults;

namespace {

struct Job {
  sim::Scenario scenario;
  pb::Outcome outcome;
};

const FaultCatalogue& shipped_faults() {
  static const auto loaded = FaultCatalogue::load_shipped();
  if (!loaded) FAIL(loaded.error().message());
  return *loaded;
}

std::string scenario_of_fault(const pb::Fault& fault) {
  return fault.scenario().empty() ? "ddp-16" : fault.scenario();
}

}  // namespace

TEST_CASE("every fault shows a symptom it lists, and its fix brings the job back",
          "[faults][coverage]") {
  SilentReporter reporter;
  const World world = simulated_world(reporter);
  std::map<std::string, Job> jobs;
  for (const auto& entry : shipped_faults().entries()) {
    const pb::Fault& fault = entry->fault;
    INFO(fault.id());
    const std::string name = scenario_of_fault(fault);
    if (jobs.count(name) == 0) {
      auto scenario = sim::load_scenario(name, reporter);
      REQUIRE(scenario);
      auto outcome = world.simulate(*scenario);
      REQUIRE(outcome);
      jobs[name] = {std::move(*scenario), std::move(*outcome)};
    }
    const Job& healthy = jobs[name];
    sim::Scenario broken = healthy.scenario;
    const FaultUse use = with_defaults(entry);
    const auto patches = patches_of(use, broken.document);
    REQUIRE(patches);
    bool injected = true;
    for (const pb::Patch& patch : *patches) {
      const auto applied = world.apply(broken, patch);
      if (!applied) FAIL_CHECK(applied.error().message());
      injected = injected && applied.has_value();
    }
    if (!injected) continue;
    auto outcome = world.simulate(broken);
    if (!outcome) {
      FAIL_CHECK(outcome.error().message());
      continue;
    }
    *outcome->mutable_baseline_step_time_ns() = healthy.outcome.step_time_ns();
    const std::string symptom = classify(*outcome).id();
    INFO("symptom " << symptom);
    CHECK(std::find(fault.symptoms().begin(), fault.symptoms().end(), symptom) !=
          fault.symptoms().end());
    const auto fixes = fixes_of(use, broken.document);
    REQUIRE(fixes);
    for (const pb::Fix& fix : *fixes) {
      INFO(fix.name());
      if (fix.restores() != pb::Fix::ALL) continue;
      sim::Scenario repaired = broken;
      for (const pb::Patch& patch : fix.patch()) {
        const auto applied = world.apply(repaired, patch);
        if (!applied) FAIL_CHECK(applied.error().message());
      }
      auto after = world.simulate(repaired);
      if (!after) {
        FAIL_CHECK(after.error().message());
        continue;
      }
      *after->mutable_baseline_step_time_ns() = healthy.outcome.step_time_ns();
      CHECK(classify(*after).id() == kHealthy);
      CHECK(static_cast<double>(after->step_time_ns().mean()) ==
            Approx(static_cast<double>(healthy.outcome.step_time_ns().mean())).epsilon(0.02));
    }
  }
}

TEST_CASE("the shipped coverage is what the engine shows, and all categories are reached",
          "[faults][coverage]") {
  SilentReporter reporter;
  const auto rules = Rules::load_shipped();
  const auto categories = Categories::load_shipped();
  REQUIRE(rules);
  REQUIRE(categories);
  const auto shipped = shipped_runs();
  REQUIRE(shipped);
  const auto runs = run_all(shipped_faults(), simulated_world(reporter), reporter);
  REQUIRE(runs);
  REQUIRE(runs->runs_size() == shipped->runs_size());
  for (int i = 0; i < runs->runs_size(); ++i) {
    const pb::FaultRun& now = runs->runs(i);
    const pb::FaultRun& then = shipped->runs(i);
    INFO(now.fault() << " " << now.refused());
    CHECK(now.fault() == then.fault());
    CHECK(now.verdict() == then.verdict());
    CHECK(now.symptom() == then.symptom());
    CHECK(now.refused().empty());
    CHECK(now.slowdown() == Approx(then.slowdown()).epsilon(0.01));
  }
  const pb::Coverage table = coverage(*runs, shipped_faults(), *rules, *categories);
  for (const pb::CategoryCoverage& row : table.categories()) {
    INFO(row.id());
    CHECK((row.reached() || row.id() == "D1.12" || row.id() == "D2.7"));
  }
}

}  // namespace rehearse::coverage_test
