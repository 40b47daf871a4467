// SPDX-License-Identifier: Apache-2.0
// What a useful step costs on machines that fail: the formula against limits, against drawn failures, and in a run.
#include <catch2/catch.hpp>
#include <cmath>

#include "base/random.hpp"
#include "sim/outcome/outcome.hpp"
#include "sim/simulate.hpp"

namespace rehearse::goodput_test {
using namespace rehearse;
using namespace rehearse::sim;

namespace {

// Plays failures: works through `segments` stretches of `every` steps and a checkpoint, each again from its begin
// when a failure comes; time per step.
double played(double step, double stall, double every, double between, double restart,
              int segments) {
  Random random(7, "failures");
  double now = 0;
  const auto next = [&] { return -between * std::log1p(-random.uniform()); };
  double failure = next();
  for (int done = 0; done < segments;) {
    const double end = now + every * step + stall;
    if (failure >= end) {
      now = end;
      ++done;
      continue;
    }
    // A restart that fails begins again.
    now = failure + restart;
    for (failure += next(); failure < now; failure += next()) now = failure + restart;
  }
  return now / (segments * every);
}

}  // namespace

TEST_CASE("a useful step costs what drawn failures make of it", "[sim][goodput]") {
  // Without failures: the step and its share of the stall.
  CHECK(expected_step(2, 30, 100, 1e15, 600) == Approx(2.3).epsilon(1e-4));
  for (const double every : {50.0, 400.0, 3000.0}) {
    INFO(every);
    CHECK(expected_step(2, 30, every, 20'000, 600) ==
          Approx(played(2, 30, every, 20'000, 600, 20'000)).epsilon(0.03));
  }
}

TEST_CASE("the best interval is where the expected step is least", "[sim][goodput]") {
  const double best = std::sqrt(2 * 30 * 1e6) / 2;
  CHECK(expected_step(2, 30, best, 1e6, 600) < expected_step(2, 30, best / 2, 1e6, 600));
  CHECK(expected_step(2, 30, best, 1e6, 600) < expected_step(2, 30, best * 2, 1e6, 600));
}

TEST_CASE("a run that writes checkpoints says what failures cost", "[sim][goodput]") {
  SilentReporter silent;
  const auto run = [&](const std::vector<std::string>& settings) {
    auto scenario = load_scenario("ddp-16", silent);
    REQUIRE(scenario);
    for (const std::string& setting : settings) {
      const auto patch = parse_assignment(setting);
      REQUIRE(patch);
      REQUIRE(apply(*scenario, *patch));
    }
    const auto patch = parse_patch("write-checkpoint: {bytes: 1GiB, every: 2}", "test");
    REQUIRE(patch);
    REQUIRE(apply(*scenario, *patch));
    auto outcome = simulate(*scenario, silent);
    REQUIRE(outcome);
    return *outcome;
  };
  CHECK_FALSE(run({}).has_goodput());
  const pb::Outcome outcome =
      run({"failures.node_mtbf=10d", "failures.restart=10min", "failures.checkpoint_every=1000"});
  REQUIRE(outcome.has_goodput());
  const pb::Goodput& good = outcome.goodput();
  CHECK(good.job_mtbf_ns() == 5ll * 86'400 * 1'000'000'000);
  CHECK(good.checkpoint_stall_ns() > 0);
  CHECK(good.plain_step_ns() < outcome.step_time_ns().mean());
  CHECK(good.useful_step_ns() > good.plain_step_ns() + good.checkpoint_stall_ns() / 1000);
  CHECK(good.best_every() > 1);
}

}  // namespace rehearse::goodput_test
