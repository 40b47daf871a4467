// SPDX-License-Identifier: Apache-2.0
#include "sim/launch_order.hpp"

#include <algorithm>
#include <catch2/catch.hpp>

#include "sim/simulate.hpp"

namespace rehearse::launch_order_test {
using namespace rehearse;
using namespace rehearse::sim;

namespace {

using Words = std::vector<std::string>;

// gpt-32 has communicators of three kinds, on streams of their own.
pb::Outcome run(const Words& settings) {
  SilentReporter silent;
  auto scenario = load_scenario("gpt-32", silent);
  REQUIRE(scenario);
  for (const std::string& setting : settings) {
    const auto patch = parse_assignment(setting);
    REQUIRE(patch);
    REQUIRE(apply(*scenario, *patch));
  }
  auto outcome = simulate(*scenario, silent);
  if (!outcome) FAIL(outcome.error().message());
  return *outcome;
}

bool finds(const pb::Outcome& outcome, const std::string& id) {
  return std::any_of(outcome.findings().begin(), outcome.findings().end(),
                     [&](const pb::OutcomeFinding& each) { return each.id() == id; });
}

}  // namespace

TEST_CASE("implicit launch order serialises communicators with an old CUDA only", "[sim]") {
  const std::string current = "launch.nccl_version=2.26.2";
  const std::string order = "launch.env.NCCL_LAUNCH_ORDER_IMPLICIT=1";
  const pb::Outcome usual = run({current});
  const pb::Outcome old = run({current, order, "platform.nodes[*].versions.cuda=12.2"});
  CHECK(old.verdict() == pb::COMPLETED);
  CHECK(finds(old, "nccl-launch-order"));
  CHECK(old.step_time_ns().mean() > usual.step_time_ns().mean());
  for (const Words& settings :
       {Words{current, order, "platform.nodes[*].versions.cuda=12.4"}, Words{current, order},
        Words{"launch.nccl_version=2.25.1", order, "platform.nodes[*].versions.cuda=12.2"}}) {
    const pb::Outcome other = run(settings);
    CHECK_FALSE(finds(other, "nccl-launch-order"));
  }
  CHECK(run({current, order}).step_time_ns().mean() == usual.step_time_ns().mean());
}

TEST_CASE("threads that launch side by side are told while a race is fatal", "[sim]") {
  const auto told = [](const char* fatal) {
    SilentReporter silent;
    auto scenario = load_scenario("gpt-32", silent);
    REQUIRE(scenario);
    pb::Launch& launch = *scenario->document.mutable_launch();
    launch.set_nccl_version("2.26.2");
    (*launch.mutable_env())["NCCL_LAUNCH_ORDER_IMPLICIT"] = "1";
    (*launch.mutable_env())["NCCL_LAUNCH_RACE_FATAL"] = fatal;
    // Two host threads, each with one call on a stream of its own.
    traces::RankProgram rank;
    rank.lane_begin = {0};
    for (const auto kind : {traces::LaneKind::kHostThread, traces::LaneKind::kHostThread,
                            traces::LaneKind::kStream, traces::LaneKind::kStream}) {
      const auto op = static_cast<traces::OpId>(rank.kind.size());
      const bool call = kind == traces::LaneKind::kStream;
      rank.lanes.push_back({kind, static_cast<int64_t>(op), 0});
      rank.kind.push_back(call ? traces::OpKind::kCall : traces::OpKind::kHost);
      rank.name.push_back(0);
      rank.gap.push_back(0);
      rank.duration.push_back(0);
      rank.call.push_back(call ? static_cast<uint32_t>(rank.calls.size()) : traces::kNoCall);
      rank.edge_begin.push_back(static_cast<uint32_t>(rank.edges.size()));
      if (call) {
        rank.edges.push_back(op - 2);
        rank.calls.emplace_back();
        rank.call_op.push_back(op);
      }
      rank.lane_begin.push_back(op + 1);
    }
    rank.edge_begin.push_back(static_cast<uint32_t>(rank.edges.size()));
    traces::Program program;
    program.ranks.push_back(std::move(rank));
    REQUIRE(order_launches(*scenario, program));
    return program.findings.count("nccl-launch-race") > 0;
  };
  CHECK(told("1"));
  CHECK_FALSE(told("0"));
}

}  // namespace rehearse::launch_order_test
