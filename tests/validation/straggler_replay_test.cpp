// SPDX-License-Identifier: Apache-2.0
#include "validation/straggler_replay.hpp"

#include <algorithm>
#include <catch2/catch.hpp>

namespace rehearse::validation::straggler_replay_test {
namespace {

constexpr Nanos kMs = 1'000'000;

// Two workers that compute and then reduce; the transfer takes 2 ms. Worker 1 computes `slow`.
traces::Trace recorded(std::initializer_list<Nanos> slow) {
  traces::Trace trace;
  trace.communicators.push_back({"dp", "", {0, 1}, "nccl"});
  const uint32_t work = trace.strings.intern("work"), reduce = trace.strings.intern("reduce");
  for (uint32_t r = 0; r < 2; ++r) {
    traces::RankTrace rank;
    rank.rank = r;
    rank.lanes.push_back({traces::LaneKind::kStream, 7, 0});
    Nanos at = 0;
    int64_t number = 0;
    for (const Nanos length : slow) {
      const Nanos own = r == 1 ? length : 10 * kMs;
      const Nanos end = std::max(length, 10 * kMs) + 2 * kMs;
      rank.steps.push_back({number, at, at + end});
      rank.ops.add(traces::OpKind::kKernel, 0, work, at, own);
      traces::Call call;
      call.sequence = number++;
      rank.ops.add_call(0, reduce, at + own, end - own, 0, call);
      at += end;
    }
    trace.ranks.push_back(std::move(rank));
  }
  return trace;
}

}  // namespace

TEST_CASE("a recorded step is computed again from work, last arrival and transfer",
          "[validation][straggler]") {
  const auto steps = recorded_steps(recorded({30 * kMs, 20 * kMs}));
  REQUIRE(steps);
  REQUIRE(steps->size() == 2);
  CHECK((*steps)[0].measured() == 32 * kMs);
  const StepCosts costs = costs_of({(*steps)[0]});
  const auto again = replayed((*steps)[1], costs, HostCosts::kCounted, nullptr);
  REQUIRE(again);
  CHECK(*again == 22 * kMs);
}

TEST_CASE("without stragglers every worker takes the mean", "[validation][straggler]") {
  const auto steps = recorded_steps(recorded({30 * kMs}));
  REQUIRE(steps);
  const StepCosts costs = costs_of(*steps);
  const auto even = mean_work(*steps);
  const auto without = replayed(steps->front(), costs, HostCosts::kNone, &even);
  REQUIRE(without);
  CHECK(*without == 22 * kMs);
}

TEST_CASE("calls that never meet are refused", "[validation][straggler][refusal]") {
  traces::Trace trace = recorded({30 * kMs, 30 * kMs});
  for (traces::RankTrace& rank : trace.ranks) rank.steps = {{0, 0, 64 * kMs}};
  REQUIRE(recorded_steps(trace));
  auto& calls = trace.ranks[1].ops.calls;
  std::swap(calls[0].sequence, calls[1].sequence);
  const auto crossed = recorded_steps(trace);
  REQUIRE(crossed);
  CHECK_FALSE(replayed(crossed->front(), costs_of(*crossed), HostCosts::kNone, nullptr));
  trace.ranks[0].steps.clear();
  CHECK_FALSE(recorded_steps(trace));
}

}  // namespace rehearse::validation::straggler_replay_test
