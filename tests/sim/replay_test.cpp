// SPDX-License-Identifier: Apache-2.0
#include "sim/replay/replay.hpp"

#include <catch2/catch.hpp>

#include "tests/sim/small_trace.hpp"

namespace rehearse::replay_test {
using namespace rehearse;
using namespace rehearse::sim;
using rehearse::tests::SmallTrace;
using traces::Call;
using traces::Collective;

namespace {

constexpr Nanos kUs = 1000;

// Every call moves its bytes over link 0 (1 GB/s) after 10 us.
Result<Replayed> run(const traces::Trace& trace) {
  auto program = traces::build_program(trace);
  REQUIRE(program);
  const std::vector<BytesPerSec> capacity = {1e9};
  const auto fabric = make_reference_fabric(capacity);
  SilentReporter silent;
  const TrafficOf traffic = [](const Call& call, uint32_t) -> Result<CallTraffic> {
    return CallTraffic{10 * kUs, {{{{0, 1}}, static_cast<double>(call.bytes_in)}}, "TEST", 1, 0};
  };
  ReplayOptions options;
  options.traffic = traffic;
  options.capacity = capacity;
  return replay(*program, options, *fabric, silent);
}

}  // namespace

TEST_CASE("a kernel starts when its launch has ended and its stream is free", "[sim][replay]") {
  SmallTrace small(1);
  small.kernel(0, 100 * kUs);
  small.kernel(0, 50 * kUs);
  const auto out = run(small.trace());
  REQUIRE(out);
  CHECK(out->completed);
  // Launches take 5 us each, kernels start where the recorded ones did.
  CHECK(out->end_time == 5 * kUs + 150 * kUs);
}

TEST_CASE("an all-reduce ends together on all ranks, after the last has come", "[sim][replay]") {
  SmallTrace small(2);
  small.kernel(0, 100 * kUs);
  small.kernel(1, 300 * kUs);
  small.all_reduce({0, 1}, 1'000'000);
  const auto out = run(small.trace());
  REQUIRE(out);
  REQUIRE(out->meetings.size() == 1);
  const Meeting& meeting = out->meetings[0];
  CHECK(meeting.last_arrival == 305 * kUs);
  CHECK(meeting.last_arriver == 1);
  CHECK(meeting.end == 305 * kUs + 10 * kUs + 1000 * kUs);
}

TEST_CASE("a rank that never comes leaves the others waiting", "[sim][replay]") {
  SmallTrace small(3);
  small.all_reduce({0, 1, 2}, 1000);
  small.all_reduce({0, 2}, 1000, {0, 1, 2});
  const auto out = run(small.trace());
  REQUIRE(out);
  CHECK_FALSE(out->completed);
  CHECK(out->meetings[0].end > 0);
  CHECK(out->meetings[1].end == -1);
  CHECK(out->meetings[1].arrived == 2);
}

TEST_CASE("members that disagree about the size never end", "[sim][replay]") {
  SmallTrace small(2);
  small.call(0, {0, 1}, Collective::kAllReduce, 1000);
  small.call(1, {0, 1}, Collective::kAllReduce, 2000);
  const auto out = run(small.trace());
  REQUIRE(out);
  CHECK_FALSE(out->completed);
  CHECK(out->meetings[0].mismatch);
}

TEST_CASE("a send meets its recv and both go on", "[sim][replay]") {
  SmallTrace small(2);
  small.send(0, 1, 500'000);
  const auto out = run(small.trace());
  REQUIRE(out);
  CHECK(out->completed);
  REQUIRE(out->meetings.size() == 1);
  CHECK(out->meetings[0].end == 5 * kUs + 10 * kUs + 500 * kUs);
}

TEST_CASE("send and recv of one group cannot block each other", "[sim][replay]") {
  SmallTrace small(2);
  small.exchange(0, 1, 1000);
  const auto out = run(small.trace());
  REQUIRE(out);
  CHECK(out->completed);
  CHECK(out->meetings.size() == 2);
}

TEST_CASE("two collectives at once share the link", "[sim][replay]") {
  SmallTrace small(4);
  small.all_reduce({0, 1}, 1'000'000);
  small.all_reduce({2, 3}, 1'000'000);
  const auto out = run(small.trace());
  REQUIRE(out);
  REQUIRE(out->meetings.size() == 2);
  CHECK(out->meetings[0].end == 15 * kUs + 2000 * kUs);
  CHECK(out->meetings[1].end == 15 * kUs + 2000 * kUs);
}

TEST_CASE("lane visits grow with the work, not with its square", "[sim][replay]") {
  const auto visits = [](int rounds) {
    SmallTrace small(4);
    for (int i = 0; i < rounds; ++i) {
      for (uint32_t r = 0; r < 4; ++r) small.kernel(r, 10 * kUs);
      small.all_reduce({0, 1, 2, 3}, 1000);
    }
    const auto out = run(small.trace());
    REQUIRE(out);
    CHECK(out->completed);
    return out->lane_visits;
  };
  const auto small = visits(50), large = visits(500);
  CHECK(large < 11 * small);
}

}  // namespace rehearse::replay_test
