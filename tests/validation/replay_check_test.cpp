// SPDX-License-Identifier: Apache-2.0
#include "validation/replay_check.hpp"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>

#include "tests/skip.hpp"
#include "traces/import/import.hpp"

namespace rehearse::replay_check_test {
using namespace rehearse;
using namespace rehearse::validation;

namespace {}  // namespace

TEST_CASE("a generated job is compared rank by rank and call by call", "[validation][replay]") {
  SilentReporter silent;
  const auto scenario = sim::load_scenario("dlrm-8", silent);
  REQUIRE(scenario);
  const auto report = check_replay(*scenario, silent);
  if (!report) FAIL(report.error().message());
  CHECK(report->steps.size() == 8 * 4);
  CHECK_FALSE(report->calls.empty());
  for (const RankStep& step : report->steps) {
    CHECK(step.measured > 0);
    CHECK(step.predicted > 0);
    CHECK(step.naive > 0);
    CHECK(step.naive < step.measured);
  }
  for (const CallTimes& call : report->calls) CHECK(call.predicted_end >= call.predicted_start);
}

// A rank without work was taken for a bug of ours, a trace without any read what is not there.
TEST_CASE("a trace that holds steps and no work has nothing to compare", "[validation][replay]") {
  SilentReporter silent;
  traces::Trace trace;
  trace.header.set_world_size(2);
  for (uint32_t r = 0; r < 2; ++r) {
    traces::RankTrace rank;
    rank.rank = r;
    rank.lanes = {{traces::LaneKind::kStream, 7, 0}};
    rank.steps = {{0, 0, 1000}};
    trace.ranks.push_back(std::move(rank));
  }
  const auto check = [&] {
    const auto scenario = sim::scenario_of(std::make_shared<traces::Trace>(trace), "no work");
    REQUIRE(scenario);
    return check_replay(*scenario, silent);
  };
  const auto none = check();
  REQUIRE_FALSE(none);
  CHECK(none.error().code == Code::kBadInput);
  trace.ranks[0].ops.add(traces::OpKind::kKernel, 0, trace.strings.intern("gemm"), 10, 500, 1);
  const auto one = check();
  if (!one) FAIL(one.error().message());
  CHECK(one->steps.size() == 2);
}

TEST_CASE("the recorded 8-rank job is replayed closer than a sum of kernels",
          "[validation][replay]") {
  const auto folder = rehearse::tests::real_data("kineto/dlrm_8rank_v100");
  if (!folder) return;
  SilentReporter silent;
  auto imported = traces::import_files({*folder / "kineto", *folder / "et"}, {}, silent);
  if (!imported) FAIL(imported.error().message());
  const auto scenario = sim::scenario_of(
      std::make_shared<const traces::Trace>(std::move(imported->trace)), "dlrm_8rank_v100");
  if (!scenario) FAIL(scenario.error().message());
  const auto report = check_replay(*scenario, silent);
  if (!report) FAIL(report.error().message());
  REQUIRE(report->steps.size() == 8);
  CHECK(report->calls.size() == 8 * 8);
  const std::vector<double> replayed = step_errors(*report, &RankStep::predicted);
  const std::vector<double> naive = step_errors(*report, &RankStep::naive);
  CHECK(replayed.back() < naive.front());
}

}  // namespace rehearse::replay_check_test
