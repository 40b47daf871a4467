// SPDX-License-Identifier: Apache-2.0
// Ranks run ahead of the clock where nothing can change what they do. With a director, who may change anything, they do
// not: the same programs must come out the same.
#include <catch2/catch.hpp>

#include "base/random.hpp"
#include "sim/replay/replay.hpp"
#include "tests/sim/small_trace.hpp"

namespace rehearse::ahead_test {
using namespace rehearse;
using namespace rehearse::sim;
using rehearse::tests::SmallTrace;
using traces::Call;

namespace {

constexpr uint32_t kRanks = 8;
constexpr Nanos kUs = 1000;

// Changes nothing, and nobody knows.
class Inert final : public Director {
 public:
  void declare(Fabric&) override {}
  void begin(Stage&) override {}
  void on_timer(Stage&, uint64_t) override {}
};

// Pairs of ranks reduce among themselves, sometimes all of them, and neighbours of different pairs send.
traces::Program random_program(uint64_t seed) {
  Random random(seed, "ahead");
  SmallTrace small(kRanks);
  std::vector<uint32_t> all(kRanks);
  for (uint32_t r = 0; r < kRanks; ++r) all[r] = r;
  for (int i = 0; i < 30; ++i) {
    for (uint32_t r = 0; r < kRanks; ++r) {
      for (uint64_t k = random.below(4); k > 0; --k) {
        small.kernel(r, static_cast<Nanos>(1 + random.below(30)) * kUs);
      }
    }
    const uint64_t what = random.below(10);
    const auto bytes = static_cast<Bytes>(1000 + random.below(50'000));
    if (what == 0) {
      small.all_reduce(all, bytes);
    } else if (what == 1) {
      const auto from = static_cast<uint32_t>(random.below(kRanks));
      small.send(from, (from + 2) % kRanks, bytes);
    } else {
      for (uint32_t r = 0; r < kRanks; r += 2) {
        if (random.below(3) > 0) small.all_reduce({r, r + 1}, bytes + r);
      }
    }
  }
  auto program = traces::build_program(small.trace());
  REQUIRE(program);
  return std::move(*program);
}

// The same without messages, calls of pairs and of all on streams of their own: they overlap.
traces::Program overlapping_program(uint64_t seed) {
  traces::Program program;
  std::vector<traces::RankId> all;
  for (uint32_t r = 0; r < kRanks; ++r) all.push_back(r);
  for (uint32_t p = 0; p < kRanks / 2; ++p) {
    program.communicators.push_back({"pair", "test", {2 * p, 2 * p + 1}, "nccl"});
  }
  program.communicators.push_back({"all", "test", all, "nccl"});
  program.steps = 1;
  for (uint32_t r = 0; r < kRanks; ++r) {
    Random own(seed, "ahead-rank", r), common(seed, "ahead-calls"), pair(seed, "ahead-pair", r / 2);
    traces::RankTrace rank;
    rank.rank = r;
    rank.lanes = {{traces::LaneKind::kHostThread, 1, 0},
                  {traces::LaneKind::kStream, 7, 0},
                  {traces::LaneKind::kStream, 20, 0},
                  {traces::LaneKind::kStream, 21, 0}};
    Nanos host = 0;
    std::vector<Nanos> free(4, 0);
    int64_t id = 0;
    std::vector<int64_t> sequence(program.communicators.size(), 0);
    const auto launch = [&](traces::LaneId lane, Nanos duration) {
      rank.ops.add(traces::OpKind::kLaunch, 0, 0, host, 4 * kUs, ++id);
      host += 4 * kUs;
      const Nanos start = std::max(host, free[lane]);
      free[lane] = start + duration;
      return start;
    };
    const auto reduce = [&](traces::LaneId lane, uint32_t communicator, Bytes bytes) {
      traces::Call call;
      call.communicator = communicator;
      call.sequence = sequence[communicator]++;
      call.bytes_in = call.bytes_out = bytes;
      const Nanos start = launch(lane, kUs);
      rank.ops.add_call(lane, 0, start, kUs, id, call);
    };
    for (int i = 0; i < 40; ++i) {
      for (uint64_t k = own.below(4); k > 0; --k) {
        const auto duration = static_cast<Nanos>(1 + own.below(20)) * kUs;
        const Nanos start = launch(1, duration);
        rank.ops.add(traces::OpKind::kKernel, 1, 0, start, duration, id);
      }
      // Even sizes: two that share a link get whole nanoseconds each.
      if (pair.below(3) > 0) reduce(2, r / 2, static_cast<Bytes>(2 * (500 + pair.below(20'000))));
      if (common.below(4) == 0) {
        reduce(3, kRanks / 2, static_cast<Bytes>(2 * (500 + common.below(20'000))));
      }
    }
    rank.steps.push_back({0, 0, std::max(host, free[1])});
    rank.ops.sort();
    auto built = traces::build_rank_program(rank, 1, program.findings);
    REQUIRE(built);
    program.ranks.push_back(std::move(*built));
  }
  return program;
}

enum class Links { kOwn, kShared };

// Links 0 to 3 are the pairs', 4 the others'; where links are shared, the call of all crosses the pairs' too.
Replayed run(const traces::Program& program, Links links, Director* director) {
  const std::vector<BytesPerSec> capacity(5, 1e9);  // a byte per nanosecond
  ReplayOptions options;
  options.traffic = [&](const Call& call, uint32_t member) -> Result<CallTraffic> {
    const auto& members = program.communicators[call.communicator].members;
    CallTraffic out;
    out.latency = 3 * kUs;
    out.channels = 10;
    FlowLoad flow;
    flow.bytes = static_cast<double>(std::max(call.bytes_in, call.bytes_out));
    const bool pair = members.size() == 2 && members[0] / 2 == members[1] / 2;
    flow.links = {{pair ? members[0] / 2 : 4, 1}};
    if (!pair && links == Links::kShared) flow.links = {{0, 1}, {1, 1}, {2, 1}, {3, 1}, {4, 1}};
    out.flows.push_back(flow);
    if (traces::is_point_to_point(call.collective)) {
      out.hops.push_back({member, static_cast<uint32_t>(call.peer), flow});
      out.hop_bytes = call.bytes_in;
    }
    return out;
  };
  options.capacity = capacity;
  options.gpus.assign(kRanks, {100, 0});
  options.director = director;
  const auto fabric = make_reference_fabric(capacity);
  SilentReporter silent;
  auto out = replay(program, options, *fabric, silent);
  REQUIRE(out);
  REQUIRE(out->completed);
  return std::move(*out);
}

}  // namespace

TEST_CASE("ranks that run ahead do what they do with a clock for all", "[sim][ahead]") {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    const traces::Program program = random_program(seed);
    for (const Links links : {Links::kOwn, Links::kShared}) {
      INFO("seed " << seed << (links == Links::kOwn ? "" : ", shared links"));
      Inert inert;
      const Replayed ahead = run(program, links, nullptr);
      const Replayed together = run(program, links, &inert);
      CHECK(ahead.end == together.end);
      CHECK(ahead.arrival == together.arrival);
      CHECK(ahead.end_time == together.end_time);
      REQUIRE(ahead.meetings.size() == together.meetings.size());
      for (size_t m = 0; m < ahead.meetings.size(); ++m) {
        CHECK(ahead.meetings[m].end == together.meetings[m].end);
        CHECK(ahead.meetings[m].last_arriver == together.meetings[m].last_arriver);
        CHECK(ahead.meetings[m].first_arriver == together.meetings[m].first_arriver);
      }
      CHECK(ahead.counters.flows >= together.counters.flows);
      for (size_t l = 0; l < ahead.link_bytes.size(); ++l) {
        CHECK(ahead.link_bytes[l] == Approx(together.link_bytes[l]));
      }
      CHECK(ahead.events < together.events);
    }
  }
}

TEST_CASE("calls that meet others on their links after all share them", "[sim][ahead]") {
  uint64_t shared = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    INFO("seed " << seed);
    const traces::Program program = overlapping_program(seed);
    Inert inert;
    const Replayed ahead = run(program, Links::kShared, nullptr);
    const Replayed together = run(program, Links::kShared, &inert);
    CHECK(ahead.end == together.end);
    CHECK(ahead.arrival == together.arrival);
    for (size_t l = 0; l < ahead.link_bytes.size(); ++l) {
      CHECK(ahead.link_bytes[l] == Approx(together.link_bytes[l]));
    }
    shared += ahead.counters.shared;
  }
  CHECK(shared > 1000);
}

TEST_CASE("calls on links of their own need no events", "[sim][ahead]") {
  SmallTrace small(kRanks);
  for (int i = 0; i < 50; ++i) {
    for (uint32_t r = 0; r < kRanks; ++r) small.kernel(r, (10 + r) * kUs);
    for (uint32_t r = 0; r < kRanks; r += 2) small.all_reduce({r, r + 1}, 10'000);
  }
  const auto program = traces::build_program(small.trace());
  REQUIRE(program);
  const Replayed out = run(*program, Links::kOwn, nullptr);
  CHECK(out.counters.flows == 200);
  CHECK(out.events == 0);
}

}  // namespace rehearse::ahead_test
