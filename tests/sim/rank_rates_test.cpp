// SPDX-License-Identifier: Apache-2.0
// Kernels beside collectives, and what directors do to running ranks.
#include <catch2/catch.hpp>

#include "base/random.hpp"
#include "sim/replay/replay.hpp"
#include "tests/sim/small_trace.hpp"

namespace rehearse::rank_rates_test {
using namespace rehearse;
using namespace rehearse::sim;
using rehearse::tests::SmallTrace;
using traces::Call;
using traces::Collective;

namespace {

constexpr Nanos kUs = 1000;

struct Setting {
  uint32_t sms = 0;  // 0: no contention; every call holds 25 of them
  Director* director = nullptr;
  double beside = 0;  // as the platform states it
};

// Every call moves its bytes over link 0 (1 GB/s) at once.
Result<Replayed> run(const traces::Program& program, const Setting& setting = {}) {
  const std::vector<BytesPerSec> capacity = {1e9};
  const auto fabric = make_reference_fabric(capacity);
  SilentReporter silent;
  ReplayOptions options;
  options.traffic = [](const Call& call, uint32_t) -> Result<CallTraffic> {
    CallTraffic out;
    out.flows.push_back({{{0, 1}}, static_cast<double>(call.bytes_in)});
    out.channels = 25;
    return out;
  };
  options.capacity = capacity;
  if (setting.sms > 0) options.gpus.assign(program.ranks.size(), {setting.sms, 0, setting.beside});
  options.director = setting.director;
  return replay(program, options, *fabric, silent);
}

traces::Program program_of(SmallTrace& small) {
  auto program = traces::build_program(small.trace());
  REQUIRE(program);
  return std::move(*program);
}

// One rank: a kernel of 1 ms launched at 0, an all-reduce of `bytes` alone on its stream, launched
// after it; both start at 5 us and 10 us.
traces::Program kernel_beside_call(Bytes bytes, uint16_t recorded = 0) {
  using namespace traces;
  Trace trace;
  RankTrace rank;
  rank.lanes = {
      {LaneKind::kHostThread, 1, 0}, {LaneKind::kStream, 7, 0}, {LaneKind::kStream, 20, 0}};
  rank.ops.add(OpKind::kLaunch, 0, 0, 0, 5 * kUs, 1);
  rank.ops.add(OpKind::kKernel, 1, 0, 5 * kUs, 1000 * kUs, 1);
  rank.ops.add(OpKind::kLaunch, 0, 0, 5 * kUs, 5 * kUs, 2);
  Call call;
  call.bytes_in = call.bytes_out = bytes;
  rank.ops.add_call(2, 0, 10 * kUs, 1, 2, call);
  rank.ops.sort();
  trace.ranks.push_back(std::move(rank));
  trace.communicators.push_back({"c", "c", {0}, "nccl"});
  auto program = build_program(trace);
  REQUIRE(program);
  auto& built = program->ranks[0];
  built.overlap.assign(built.size(), 0);
  for (OpId op = 0; op < built.size(); ++op) {
    if (built.kind[op] == OpKind::kKernel) built.overlap[op] = recorded;
  }
  return std::move(*program);
}

Nanos kernel_end(const traces::Program& program, const Replayed& out) {
  for (OpId op = 0; op < program.ranks[0].size(); ++op) {
    if (program.ranks[0].kind[op] == traces::OpKind::kKernel) return out.end[0][op];
  }
  return -1;
}

// Plays a list of what to do when.
class Script final : public Director {
 public:
  using Act = std::function<void(Stage&)>;
  void at(Nanos when, Act act) { acts_.emplace_back(when, std::move(act)); }
  void keep(LinkId link) { kept_.push_back(link); }
  void declare(Fabric& fabric) override {
    for (LinkId link : kept_) fabric.keep(link);
  }
  void begin(Stage& stage) override {
    for (size_t i = 0; i < acts_.size(); ++i) stage.timer(acts_[i].first, i);
  }
  void on_timer(Stage& stage, uint64_t tag) override { acts_[tag].second(stage); }

 private:
  std::vector<std::pair<Nanos, Act>> acts_;
  std::vector<LinkId> kept_;
};

}  // namespace

TEST_CASE("a kernel recorded alone is slowed while a collective is resident", "[sim][replay]") {
  // A quarter of the multiprocessors for 400 us: 300 us of work are done meanwhile.
  const auto program = kernel_beside_call(400'000);
  const auto out = run(program, {100});
  REQUIRE(out);
  CHECK(kernel_end(program, *out) == 5 * kUs + 1000 * kUs + 100 * kUs);
}

TEST_CASE("a kernel recorded beside a collective takes its recorded time beside one",
          "[sim][replay]") {
  // The call starts 5 us after the kernel and outlives it; those 5 us run at full rate now.
  const auto program = kernel_beside_call(5'000'000, 65535);
  const auto out = run(program, {100});
  REQUIRE(out);
  const double work = 1000 * kUs * 0.75;
  CHECK(kernel_end(program, *out) ==
        10 * kUs + static_cast<Nanos>(std::nearbyint((work - 5 * kUs) / 0.75)));
}

TEST_CASE("a kernel recorded beside a collective is faster without one", "[sim][replay]") {
  const auto program = kernel_beside_call(0, 65535);
  const auto out = run(program, {100});
  REQUIRE(out);
  CHECK(kernel_end(program, *out) == 5 * kUs + 750 * kUs);
}

TEST_CASE("what a platform states of kernels beside collectives counts instead of the model's",
          "[sim][replay]") {
  // A kernel of 1,000 us that was recorded at 1.25 times its time alone is 800 us of work.
  const auto without = kernel_beside_call(0, 65535);
  const auto faster = run(without, {.sms = 100, .beside = 1.25});
  REQUIRE(faster);
  CHECK(kernel_end(without, *faster) == 5 * kUs + 800 * kUs);
  // Beside a call that outlives it, it takes what was recorded but for the 5 us before the call: the replay of what was
  // recorded does not depend on the figure.
  const auto with = kernel_beside_call(5'000'000, 65535);
  const auto same = run(with, {.sms = 100, .beside = 1.25});
  REQUIRE(same);
  CHECK(kernel_end(with, *same) ==
        10 * kUs + static_cast<Nanos>(std::nearbyint((800 * kUs - 5 * kUs) * 1.25)));
}

TEST_CASE("without contention a kernel keeps its duration", "[sim][replay]") {
  const auto program = kernel_beside_call(400'000, 30000);
  const auto out = run(program);
  REQUIRE(out);
  CHECK(kernel_end(program, *out) == 5 * kUs + 1000 * kUs);
}

TEST_CASE("what waits for a slowed kernel waits longer", "[sim][replay]") {
  // Rank 0 and 1 each run kernels and an all-reduce after them on another stream, twice: the second
  // all-reduce waits for a kernel that ran beside the first one.
  SmallTrace small(2);
  for (int i = 0; i < 2; ++i) {
    small.kernel(0, 100 * kUs);
    small.kernel(1, 100 * kUs);
    small.all_reduce({0, 1}, 50'000);
  }
  const auto program = program_of(small);
  const auto plain = run(program);
  const auto slowed = run(program, {100});
  REQUIRE(plain);
  REQUIRE(slowed);
  CHECK(slowed->completed);
  // In this trace kernels wait for the collective before them: nothing runs beside one.
  CHECK(slowed->end_time == plain->end_time);
}

TEST_CASE("a GPU that slows down in the middle of a kernel ends it later", "[sim][replay]") {
  const auto program = kernel_beside_call(0);
  Script script;
  // Half speed from 205 us on: 200 us done, 800 us of work take 1600 us.
  script.at(205 * kUs, [](Stage& stage) { stage.set_gpu_speed(0, 0.5); });
  const auto out = run(program, {0, &script});
  REQUIRE(out);
  CHECK(kernel_end(program, *out) == 205 * kUs + 1600 * kUs);
  CHECK(out->completed);
}

TEST_CASE("a GPU that stands still for a while does nothing meanwhile", "[sim][replay]") {
  const auto program = kernel_beside_call(0);
  Script script;
  script.at(205 * kUs, [](Stage& stage) { stage.set_gpu_speed(0, 0); });
  script.at(905 * kUs, [](Stage& stage) { stage.set_gpu_speed(0, 1); });
  const auto out = run(program, {0, &script});
  REQUIRE(out);
  CHECK(kernel_end(program, *out) == 1005 * kUs + 700 * kUs);
}

TEST_CASE("a director without acts changes nothing", "[sim][replay]") {
  SmallTrace small(4);
  for (int i = 0; i < 5; ++i) {
    for (uint32_t r = 0; r < 4; ++r) small.kernel(r, (10 + 7 * r) * kUs);
    small.all_reduce({0, 1, 2, 3}, 10'000 * (i + 1));
    small.send(0, 1, 500);
  }
  const auto program = program_of(small);
  Script script;
  const auto plain = run(program);
  const auto directed = run(program, {0, &script});
  REQUIRE(plain);
  REQUIRE(directed);
  CHECK(directed->completed);
  CHECK(directed->end == plain->end);
  CHECK(directed->arrival == plain->arrival);
  CHECK(directed->end_time == plain->end_time);
}

TEST_CASE("going back to the present and on again changes no end", "[sim][replay]") {
  // Contention too weak to be seen: every arrival and departure changes the rate of all lanes, and
  // all ends must be those of a run without.
  for (uint64_t seed = 0; seed < 40; ++seed) {
    Random random(seed, "rank_rates_test");
    SmallTrace small(4);
    for (int i = 0; i < 30; ++i) {
      const auto a = static_cast<uint32_t>(random.below(4));
      const auto b = (a + 1 + static_cast<uint32_t>(random.below(3))) % 4;
      switch (random.below(5)) {
        case 0:
          small.all_reduce({0, 1, 2, 3}, static_cast<Bytes>(1 + random.below(100'000)));
          break;
        case 1:
          small.all_reduce({std::min(a, b), std::max(a, b)},
                           static_cast<Bytes>(1 + random.below(50'000)));
          break;
        case 2:
          small.send(a, b, static_cast<Bytes>(1 + random.below(20'000)));
          break;
        default:
          for (uint32_t r = 0; r < 4; ++r) {
            small.kernel(r, static_cast<Nanos>(1 + random.below(60'000)));
          }
      }
    }
    const auto program = program_of(small);
    const auto plain = run(program);
    const auto rated = run(program, {4'000'000'000});
    REQUIRE(plain);
    REQUIRE(rated);
    INFO("seed " << seed);
    CHECK(rated->completed == plain->completed);
    CHECK(rated->end == plain->end);
    CHECK(rated->arrival == plain->arrival);
  }
}

TEST_CASE("the same replay three times gives the same", "[sim][replay]") {
  SmallTrace small(4);
  for (int i = 0; i < 10; ++i) {
    for (uint32_t r = 0; r < 4; ++r) small.kernel(r, (10 + 3 * r) * kUs);
    small.all_reduce({0, 1, 2, 3}, 40'000);
    small.exchange(0, 3, 7000);
  }
  const auto program = program_of(small);
  const auto first = run(program, {80});
  REQUIRE(first);
  for (int again = 0; again < 2; ++again) {
    const auto next = run(program, {80});
    REQUIRE(next);
    CHECK(next->end == first->end);
    CHECK(next->arrival == first->arrival);
    CHECK(next->link_bytes == first->link_bytes);
  }
}

TEST_CASE("a rank that stops leaves the others waiting in its calls", "[sim][replay]") {
  SmallTrace small(3);
  for (int i = 0; i < 4; ++i) {
    for (uint32_t r = 0; r < 3; ++r) small.kernel(r, 100 * kUs);
    small.all_reduce({0, 1, 2}, 100'000);
  }
  const auto program = program_of(small);
  const auto plain = run(program);
  REQUIRE(plain);
  REQUIRE(plain->meetings.size() == 4);
  SECTION("in the middle of a transfer") {
    const Nanos when = plain->meetings[1].end - 50 * kUs;
    Script script;
    script.at(when, [](Stage& stage) { stage.stop_rank(1); });
    const auto out = run(program, {0, &script});
    REQUIRE(out);
    CHECK_FALSE(out->completed);
    CHECK(out->meetings[0].end == plain->meetings[0].end);
    CHECK(out->meetings[1].end == -1);
    CHECK(out->meetings[1].halted);
    CHECK(out->meetings[1].arrived == 3);
  }
  SECTION("in the middle of a kernel") {
    const Nanos when = plain->meetings[1].end + 50 * kUs;
    Script script;
    script.at(when, [](Stage& stage) { stage.stop_rank(1); });
    const auto out = run(program, {0, &script});
    REQUIRE(out);
    CHECK_FALSE(out->completed);
    CHECK(out->meetings[1].end == plain->meetings[1].end);
    CHECK(out->meetings[2].arrived == 2);
    CHECK(out->meetings[2].end == -1);
    for (Nanos end : out->end[1].all()) CHECK(end <= when);
  }
}

TEST_CASE("a link that goes down for a while delays what crosses it", "[sim][replay]") {
  SmallTrace small(2);
  small.all_reduce({0, 1}, 1'000'000);
  const auto program = program_of(small);
  const auto plain = run(program);
  REQUIRE(plain);
  Script script;
  script.keep(0);
  script.at(200 * kUs, [](Stage& stage) { CHECK(stage.set_capacity(0, 0)); });
  script.at(500 * kUs, [](Stage& stage) { CHECK(stage.set_capacity(0, 1e9)); });
  const auto out = run(program, {0, &script});
  REQUIRE(out);
  CHECK(out->completed);
  CHECK(out->meetings[0].end == plain->meetings[0].end + 300 * kUs);
}

}  // namespace rehearse::rank_rates_test
