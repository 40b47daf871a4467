// SPDX-License-Identifier: Apache-2.0
#include "sim/compare/compare.hpp"

#include <catch2/catch.hpp>

#include "tests/sim/job16.hpp"

namespace rehearse::compare_test {
using namespace rehearse;
using namespace rehearse::tests;

namespace {

pb::Outcome blamed_run(const std::vector<std::string>& changes) {
  sim::Scenario scenario = job16();
  for (const std::string& text : changes) {
    if (auto done = change(scenario, text); !done) FAIL(done.error().message());
  }
  SilentReporter silent;
  auto outcome = sim::simulate_blamed(scenario, silent);
  if (!outcome) FAIL(outcome.error().message());
  return std::move(*outcome);
}

void check_sums(const pb::Comparison& comparison) {
  for (const auto* rows : {&comparison.operations(), &comparison.ranks(), &comparison.links()}) {
    int64_t a = 0, b = 0, difference = 0;
    for (const pb::Difference& row : *rows) {
      CHECK(row.difference_ns() == row.b_ns() - row.a_ns());
      a += row.a_ns();
      b += row.b_ns();
      difference += row.difference_ns();
    }
    CHECK(a == comparison.a().length_ns());
    CHECK(b == comparison.b().length_ns());
    CHECK(difference == comparison.difference_ns());
  }
}

}  // namespace

TEST_CASE("what a comparison blames adds up to the difference", "[sim][compare]") {
  const std::vector<std::vector<std::string>> runs = {
      {},
      {"slow-rank: {rank: 6, slowdown: 2}"},
      {"platform.nodes[*].nics[*].bandwidth=10Gbps"},
      {"write-checkpoint: {bytes: 100MB}"},
      {"launch.env.NCCL_IB_DISABLE=1"}};
  std::vector<pb::Outcome> outcomes;
  for (const auto& changes : runs) outcomes.push_back(blamed_run(changes));
  for (const pb::Outcome& a : outcomes) {
    for (const pb::Outcome& b : outcomes) {
      const pb::Comparison comparison = sim::compare(a, b);
      check_sums(comparison);
      CHECK(comparison.difference_ns() == b.end_ns() - a.end_ns());
    }
  }
  const pb::Comparison same = sim::compare(outcomes[0], outcomes[0]);
  CHECK(same.difference_ns() == 0);
  for (const pb::Difference& row : same.operations()) CHECK(row.difference_ns() == 0);
}

TEST_CASE("a comparison names the slow rank and the slow links", "[sim][compare]") {
  const pb::Outcome healthy = blamed_run({});
  const pb::Comparison slow =
      sim::compare(healthy, blamed_run({"slow-rank: {rank: 6, slowdown: 3}"}));
  REQUIRE(slow.ranks_size() > 0);
  CHECK(slow.ranks(0).name() == "rank 6");
  CHECK(slow.ranks(0).difference_ns() > 0);
  const pb::Comparison network =
      sim::compare(healthy, blamed_run({"platform.nodes[*].nics[*].bandwidth=5Gbps"}));
  REQUIRE(network.links_size() > 0);
  const auto most = std::max_element(
      network.links().begin(), network.links().end(),
      [](const auto& x, const auto& y) { return x.difference_ns() < y.difference_ns(); });
  INFO(most->name());
  CHECK(most->name().find("mlx5") != std::string::npos);
}

TEST_CASE("a recording is compared with its simulation", "[sim][compare]") {
  SilentReporter silent;
  const sim::Scenario scenario = job16();
  const auto recorded = sim::recorded_run(scenario, silent);
  REQUIRE(recorded);
  CHECK(recorded->critical_path().length_ns() > 0);
  const pb::Comparison comparison = sim::compare(*recorded, blamed_run({}));
  check_sums(comparison);
  sim::Scenario changed = scenario;
  REQUIRE(change(changed, "slow-rank: {rank: 1, slowdown: 2}"));
  CHECK_FALSE(sim::recorded_run(changed, silent));
}

TEST_CASE("a comparison says that ranks are clones, and of which run", "[sim][compare]") {
  SilentReporter silent;
  const auto cloned = sim::simulate_blamed(job16_with_clone(), silent);
  REQUIRE(cloned);
  const auto notes = [](const pb::Comparison& comparison) {
    return std::vector<std::string>(comparison.notes().begin(), comparison.notes().end());
  };
  const std::string clones = "1 of 16 ranks: advice of symmetric-assumed";
  const std::string variance = "1 of 16 ranks: advice of variance-unknown";
  CHECK(notes(sim::compare(*cloned, *cloned)) == std::vector{clones, variance});
  CHECK(notes(sim::compare(blamed_run({}), *cloned)) ==
        std::vector{"B: " + clones, "B: " + variance});
  const auto recorded = sim::recorded_run(job16_with_clone(), silent);
  REQUIRE(recorded);
  CHECK(notes(sim::compare(*recorded, *cloned)) == std::vector{clones, variance});
}

TEST_CASE("a run that hangs has no critical path to compare", "[sim][compare]") {
  const pb::Comparison comparison =
      sim::compare(blamed_run({}), blamed_run({"skip-collective: {rank: 3, nth: 4}"}));
  CHECK(comparison.operations().empty());
  CHECK(comparison.b().verdict() == pb::HANG);
  CHECK(comparison.notes_size() == 1);
}

}  // namespace rehearse::compare_test
