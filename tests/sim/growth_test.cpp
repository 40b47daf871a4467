// SPDX-License-Identifier: Apache-2.0
// How the engine's work grows, by counts of what it does, not by time.
#include <catch2/catch.hpp>
#include <cmath>

#include "sim/replay/replay.hpp"
#include "tests/sim/small_trace.hpp"

using namespace rehearse;
using namespace rehearse::sim;
using rehearse::tests::SmallTrace;
using traces::Call;

namespace {

constexpr Nanos kUs = 1000;

struct Work {
  uint64_t lanes = 0, events = 0, flows = 0, visits = 0;
};

// `rounds` times eight kernels and an all-reduce of all ranks, over a ring of links, with
// contention.
Work work(uint32_t ranks, int rounds) {
  SmallTrace small(ranks);
  std::vector<uint32_t> all(ranks);
  for (uint32_t r = 0; r < ranks; ++r) all[r] = r;
  for (int i = 0; i < rounds; ++i) {
    for (uint32_t r = 0; r < ranks; ++r) {
      for (int k = 0; k < 8; ++k) small.kernel(r, (10 + r % 5) * kUs);
    }
    small.all_reduce(all, 100'000);
  }
  auto program = traces::build_program(small.trace());
  REQUIRE(program);
  const std::vector<BytesPerSec> capacity(ranks, 25e9);
  const auto fabric = make_reference_fabric(capacity);
  SilentReporter silent;
  ReplayOptions options;
  options.traffic = [&](const Call& call, uint32_t) -> Result<CallTraffic> {
    CallTraffic out;
    FlowLoad flow;
    for (LinkId l = 0; l < ranks; ++l) flow.links.push_back({l, 2});
    flow.bytes = static_cast<double>(call.bytes_in);
    out.flows.push_back(flow);
    out.channels = 20;
    return out;
  };
  options.capacity = capacity;
  options.gpus.assign(ranks, {100, 0});
  const auto out = replay(*program, options, *fabric, silent);
  REQUIRE(out);
  REQUIRE(out->completed);
  return {out->lane_visits, out->events, out->counters.flows, out->counters.visits};
}

}  // namespace

TEST_CASE("work grows linearly with operations", "[sim][growth]") {
  const Work small = work(8, 20), large = work(8, 200);
  CHECK(large.lanes <= 11 * small.lanes);
  CHECK(large.events <= 11 * small.events);
  CHECK(large.flows == 10 * small.flows);
  CHECK(large.visits == 10 * small.visits);
}

TEST_CASE("work grows at most n log n with ranks, the fabric's not at all", "[sim][growth]") {
  const Work small = work(16, 10), large = work(256, 10);
  const double most = 16.0 * std::log2(256) / std::log2(16);
  CHECK(static_cast<double>(large.lanes) <= most * static_cast<double>(small.lanes));
  CHECK(static_cast<double>(large.events) <= most * static_cast<double>(small.events));
  CHECK(large.flows == small.flows);
  CHECK(large.visits == small.visits);  // folded: a ring is a ring
}
