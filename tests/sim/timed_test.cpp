// SPDX-License-Identifier: Apache-2.0
// Resources that change while a run goes on, ranks that stop, traffic of others.
#include "sim/scenario/timed.hpp"

#include <catch2/catch.hpp>

#include "sim/schedule_director.hpp"
#include "tests/sim/job16.hpp"
#include "tests/sim/small_trace.hpp"

namespace rehearse::timed_test {
using namespace rehearse;
using namespace rehearse::sim;
using rehearse::tests::blamed;
using rehearse::tests::run_job16;
using rehearse::tests::SmallTrace;
using rehearse::tests::try_job16;

namespace {

constexpr Nanos kUs = 1000;
constexpr Nanos kSecond = 1'000'000'000;

// Two ranks, a kernel of 100 us each, then an all-reduce of 1 ms over two links of 1 GB/s.
Nanos end_of(const Schedule& schedule) {
  SmallTrace small(2);
  for (uint32_t r : {0u, 1u}) small.kernel(r, 100 * kUs);
  small.all_reduce({0, 1}, 1'000'000);
  auto program = traces::build_program(small.trace());
  REQUIRE(program);
  const std::vector<BytesPerSec> capacity = {1e9, 1e9};
  const auto fabric = make_reference_fabric(capacity);
  ScheduleDirector director(schedule, *program);
  ReplayOptions options;
  options.traffic = [](const traces::Call& call, uint32_t) -> Result<CallTraffic> {
    CallTraffic traffic;
    traffic.latency = 10 * kUs;
    traffic.flows = {{{{0, 1}, {1, 1}}, static_cast<double>(call.bytes_in)}};
    traffic.algorithm = "TEST";
    return traffic;
  };
  options.capacity = capacity;
  options.director = &director;
  SilentReporter silent;
  const auto out = replay(*program, options, *fabric, silent);
  REQUIRE(out);
  return out->completed ? out->end_time : -1;
}

}  // namespace

TEST_CASE("a link that is down for a while delays a transfer by as long", "[sim][timed]") {
  const Nanos healthy = end_of({});
  Schedule flap;
  flap.capacities = {{400 * kUs, 0, 0}, {700 * kUs, 0, 1e9}};
  CHECK(end_of(flap) == healthy + 300 * kUs);
  Schedule flaps;
  for (Nanos at = 200 * kUs; at < 600 * kUs; at += 100 * kUs) {
    flaps.capacities.push_back({at, 0, 0});
    flaps.capacities.push_back({at + 20 * kUs, 0, 1e9});
  }
  CHECK(end_of(flaps) == healthy + 80 * kUs);
}

TEST_CASE("a link that is back carries again when its transport tries", "[sim][timed]") {
  // The transfer moves from 120 us on; the link is gone from 400 us on.
  const Nanos healthy = end_of({});
  Schedule flap;
  flap.capacities = {{400 * kUs, 0, 0}, {401 * kUs, 0, 1e9}};
  flap.retries[0] = {1000 * kUs, 1000 * kUs, 7};  // as InfiniBand: evenly
  CHECK(end_of(flap) == healthy + 1000 * kUs);
  flap.capacities[1].at = 1400 * kUs;  // back just in time for the first try
  CHECK(end_of(flap) == healthy + 1000 * kUs);
  flap.capacities[1].at = 1401 * kUs;
  CHECK(end_of(flap) == healthy + 2000 * kUs);
  flap.capacities[1].at = 7400 * kUs;  // for the last
  CHECK(end_of(flap) == healthy + 7000 * kUs);
  flap.capacities[1].at = 7401 * kUs;
  CHECK(end_of(flap) == -1);
  // Down again at the moment of the first try.
  flap.capacities = {
      {400 * kUs, 0, 0}, {500 * kUs, 0, 1e9}, {1300 * kUs, 0, 0}, {1500 * kUs, 0, 1e9}};
  CHECK(end_of(flap) == healthy + 2000 * kUs);
  // Nothing was on the way: nothing waits.
  flap.capacities = {{1 * kUs, 0, 0}, {50 * kUs, 0, 1e9}};
  CHECK(end_of(flap) == healthy);
  // As TCP: each wait twice as long, up to the longest. Tries at 600, 1000, 1800, 2800 us.
  flap.retries[0] = {200 * kUs, 1000 * kUs, 16};
  flap.capacities = {{400 * kUs, 0, 0}, {1100 * kUs, 0, 1e9}};
  CHECK(end_of(flap) == healthy + 1400 * kUs);
  flap.capacities[1].at = 1801 * kUs;
  CHECK(end_of(flap) == healthy + 2400 * kUs);
}

TEST_CASE("a link at a quarter for a while moves a quarter in it", "[sim][timed]") {
  const Nanos healthy = end_of({});
  Schedule slow;
  slow.capacities = {{300 * kUs, 0, 0.25e9}, {700 * kUs, 0, 1e9}};
  CHECK(end_of(slow) == healthy + 300 * kUs);
}

TEST_CASE("a GPU at half speed from the middle of a kernel needs the rest twice", "[sim][timed]") {
  const Nanos healthy = end_of({});
  Schedule throttled;
  // The kernel runs from 5 us to 105 us.
  throttled.speeds = {{65 * kUs, 1, 0.5}};
  CHECK(end_of(throttled) == healthy + 40 * kUs);
}

TEST_CASE("a rank that stops before it comes leaves the other waiting", "[sim][timed]") {
  Schedule stops;
  stops.stopped = {{1, 50 * kUs, true}};
  CHECK(end_of(stops) == -1);
  stops.stopped = {{1, 500 * kUs, true}};
  CHECK(end_of(stops) == -1);
  stops.stopped = {{1, 5000 * kUs, true}};
  CHECK(end_of(stops) == end_of({}));
}

TEST_CASE("traffic of others takes its share and no more than its rate", "[sim][timed]") {
  const Nanos healthy = end_of({});
  Schedule beside;
  beside.background = {{{0}, 0.2e9, 0, Outage::kForever}};
  // The transfer has 0.8 GB/s.
  CHECK(end_of(beside) == healthy + 250 * kUs);
  beside.background = {{{0}, 5e9, 0, Outage::kForever}};
  CHECK(end_of(beside) == healthy + 1000 * kUs);
}

TEST_CASE("InfiniBand gives a dead link up after exactly its timer times its retries",
          "[sim][timed]") {
  const std::string dead = "{set: {\"platform.nodes[1].nics[*].down\": \"true\"}, from: 1us";
  const pb::Outcome lost = run_job16({dead + "}"});
  const Nanos patience = 7 * (Nanos{4096} << 18);  // NCCL 2.21.5
  CHECK(lost.verdict() == pb::CRASH);
  REQUIRE(lost.timers_size() > 0);
  CHECK(lost.timers(0).timer() == "ib-retry");
  REQUIRE(lost.culprits_size() == 1);
  CHECK(lost.culprits(0).link().find("node1/") == 0);
  const Nanos stood = lost.end_ns() - patience;
  CHECK(stood > 0);
  // Other settings of the timer: the same flow stands, for longer or shorter.
  const pb::Outcome longer = run_job16({"launch.env.NCCL_IB_TIMEOUT=20", dead + "}"});
  CHECK(longer.end_ns() == stood + 7 * (Nanos{4096} << 20));
  const pb::Outcome fewer = run_job16({"launch.env.NCCL_IB_RETRY_CNT=2", dead + "}"});
  CHECK(fewer.end_ns() == stood + 2 * (Nanos{4096} << 18));
  // Back just in time, and just too late.
  const std::string until = ", until: " + std::to_string(stood + patience) + "ns}";
  const std::string late = ", until: " + std::to_string(stood + patience + 1) + "ns}";
  const pb::Outcome saved = run_job16({dead + until});
  CHECK(saved.verdict() == pb::COMPLETED);
  CHECK(saved.end_ns() > stood + patience);
  CHECK(run_job16({dead + late}).verdict() == pb::CRASH);
  // A port that is gone for a moment costs a whole timeout.
  const Nanos once = Nanos{4096} << 18;
  const pb::Outcome moment = run_job16({dead + ", until: " + std::to_string(stood + 1000) + "ns}"});
  const pb::Outcome try_1 = run_job16({dead + ", until: " + std::to_string(stood + once) + "ns}"});
  CHECK(moment.verdict() == pb::COMPLETED);
  CHECK(moment.end_ns() == try_1.end_ns());
  CHECK(moment.end_ns() > stood + once);
}

TEST_CASE("TCP gives a dead interface up after 924.6 s", "[sim][timed]") {
  const std::string sockets = "launch.env.NCCL_IB_DISABLE=1";
  const std::string eth = "launch.env.NCCL_SOCKET_IFNAME=eth0";
  const std::string dead = "{set: {\"platform.nodes[1].interfaces[1].down\": \"true\"}, from: 1us";
  const std::string patient = "launch.collective_timeout=2000s";
  const pb::Outcome lost = run_job16({sockets, eth, patient, dead + "}"});
  CHECK(lost.verdict() == pb::CRASH);
  REQUIRE(lost.timers_size() > 0);
  CHECK(lost.timers(0).timer() == "socket");
  const Nanos stood = lost.end_ns() - 924'600'000'000;
  CHECK(stood > 0);
  CHECK(stood < kSecond);
  std::vector<std::string> links;
  for (const pb::Culprit& culprit : lost.culprits()) {
    if (culprit.kind() == "link") links.push_back(culprit.link());
  }
  REQUIRE(links.size() == 1);
  CHECK(links[0].find("node1/eth0") == 0);
  // Back after half a second: tries come after 0.2, 0.6 and 1.4 s.
  const auto back = [&](Nanos after) {
    return run_job16(
        {sockets, eth, patient, dead + ", until: " + std::to_string(stood + after) + "ns}"});
  };
  const pb::Outcome half = back(500'000'000);
  CHECK(half.verdict() == pb::COMPLETED);
  CHECK(half.end_ns() == back(600'000'000).end_ns());
  CHECK(half.end_ns() > stood + 600'000'000);
  // The watchdog of ten minutes is sooner.
  const pb::Outcome watched = run_job16({sockets, eth, dead + "}"});
  REQUIRE(watched.timers_size() > 0);
  CHECK(watched.timers(0).timer() == "watchdog");
}

TEST_CASE("another port of the adapter takes over when NCCL is told so", "[sim][timed]") {
  const std::string pairs =
      "{set: {\"platform.nodes[*].nics[0-1].adapter\": a, \"platform.nodes[*].nics[2-3].adapter\": "
      "b, \"platform.nodes[*].nics[4-5].adapter\": c, \"platform.nodes[*].nics[6-7].adapter\": d}}";
  const std::string lost =
      "{set: {\"platform.nodes[1].nics[0].down\": \"true\"}, from: 1us, until: 900s}";
  const std::string on = "launch.env.NCCL_IB_RESILIENCY_PORT_FAILOVER=1";
  const pb::Outcome healthy = run_job16({pairs});
  REQUIRE(healthy.verdict() == pb::COMPLETED);
  CHECK(run_job16({pairs, lost}).verdict() == pb::CRASH);
  const Nanos patience = 7 * (Nanos{4096} << 18);
  const pb::Outcome saved = run_job16({pairs, lost, on});
  CHECK(saved.verdict() == pb::COMPLETED);
  CHECK(saved.end_ns() > patience);
  CHECK(saved.end_ns() < patience + 4 * healthy.end_ns());
  // One rank without it, or ports that are devices of their own: nobody takes over.
  CHECK(run_job16({pairs, lost, on, "launch.ranks[9].env.NCCL_IB_RESILIENCY_PORT_FAILOVER=0"})
            .verdict() == pb::CRASH);
  CHECK(run_job16({lost, on}).verdict() == pb::CRASH);
}

TEST_CASE("a flapping link costs time and a patient timer survives it", "[sim][timed]") {
  const pb::Outcome healthy = run_job16({"steps: 4"});
  const pb::Outcome flapping =
      run_job16({"steps: 4",
                 "{set: {\"platform.nodes[1].nics[*].down\": \"true\"}, from: 1ms, until: 1s,"
                 " every: 10ms, lasting: 2ms}"});
  CHECK(flapping.verdict() == pb::COMPLETED);
  CHECK(flapping.end_ns() > healthy.end_ns());
}

TEST_CASE("a GPU that is slow from the start on is slow as if it always were", "[sim][timed]") {
  const pb::Outcome always = run_job16({"platform.nodes[0].gpus[5].speed=0.5"});
  const pb::Outcome timed =
      run_job16({"{set: {\"platform.nodes[0].gpus[5].speed\": \"0.5\"}, from: 0s}"});
  const auto a = static_cast<double>(always.step_time_ns().mean());
  CHECK(static_cast<double>(timed.step_time_ns().mean()) == Approx(a).epsilon(0.001));
  const pb::Outcome healthy = run_job16();
  CHECK(healthy.step_time_ns().mean() < timed.step_time_ns().mean());
  const pb::Outcome partly =
      run_job16({"{slow-rank: {rank: 5, slowdown: 2}, from: 1ms, until: 3ms}"});
  CHECK(partly.end_ns() > healthy.end_ns());
  CHECK(partly.end_ns() < timed.end_ns());
  const pb::Outcome several =
      run_job16({"{slow-rank: {ranks: \"4-5,14\", slowdown: 2}, from: 1ms, until: 3ms}"});
  CHECK(several.end_ns() >= partly.end_ns());
  CHECK(several.breakdown(14).compute() > healthy.breakdown(14).compute());
}

TEST_CASE("a rank that stops silently is named; one that dies loudly ends the job",
          "[sim][timed]") {
  const pb::Outcome healthy = run_job16();
  const Nanos at = healthy.end_ns() / 2;
  const std::string when = ", at: " + std::to_string(at) + "ns";
  const pb::Outcome silent = run_job16({"stop-rank: {rank: 11" + when + ", silent: true}"});
  CHECK(silent.verdict() == pb::HANG);
  CHECK(blamed(silent) == std::vector<uint32_t>{11});
  for (const pb::Wait& wait : silent.waits()) CHECK(wait.rank() != 11);
  const pb::Outcome loud = run_job16({"stop-rank: {rank: 11" + when + "}"});
  CHECK(loud.verdict() == pb::CRASH);
  CHECK(blamed(loud) == std::vector<uint32_t>{11});
  CHECK(loud.end_ns() == at + 100'000'000);  // torchrun looks every 0.1 s
  // Its peers wait in a call, and those on another node are told by the network.
  CHECK_FALSE(loud.first_failure().communicator().empty());
  CHECK(loud.first_failure().rank() == 11);
  const pb::Outcome node = run_job16({"stop-rank: {node: 1" + when + ", silent: true}"});
  CHECK(node.verdict() == pb::HANG);
  for (uint32_t rank : blamed(node)) CHECK(rank >= 8);
  const pb::Outcome crashed = run_job16({"stop-rank: {node: 1" + when + "}"});
  CHECK(crashed.verdict() == pb::CRASH);
  CHECK(blamed(crashed) == std::vector<uint32_t>{8, 9, 10, 11, 12, 13, 14, 15});
}

TEST_CASE("a rank that is no more says nothing, also of the call that it was in", "[sim][timed]") {
  const Nanos end = run_job16().end_ns();
  size_t others = 0;
  for (int part = 1; part < 24; ++part) {
    const std::string at = std::to_string(end * part / 24);
    INFO(at);
    const pb::Outcome out = run_job16({"stop-rank: {rank: 11, at: " + at + "ns, silent: true}"});
    for (const pb::TimerEvent& timer : out.timers()) CHECK(timer.rank() != 11);
    for (const auto& error : out.error_text()) CHECK(error.rank() != 11);
    others += static_cast<size_t>(out.error_text_size());
  }
  CHECK(others > 0);
}

TEST_CASE("background traffic slows a job and does not hide its hang", "[sim][timed]") {
  const std::string traffic =
      "background-traffic: {from-node: 0, to-node: 1, nic: 0, rate: 190Gbps}";
  const pb::Outcome healthy = run_job16();
  const pb::Outcome busy = run_job16({traffic});
  CHECK(busy.verdict() == pb::COMPLETED);
  CHECK(busy.end_ns() > healthy.end_ns());
  const pb::Outcome hang = run_job16({traffic, "skip-collective: {rank: 3, nth: 4}"});
  CHECK(hang.verdict() == pb::HANG);
  CHECK(blamed(hang) == std::vector<uint32_t>{3});
}

TEST_CASE("background traffic ends with a job whose bytes stand still for ever", "[sim][timed]") {
  Schedule stopped;
  stopped.background = {{{0}, 1e8}};
  stopped.stopped = {{1, 600 * kUs}};  // in the middle of the all-reduce
  CHECK(end_of(stopped) == -1);
  Schedule dead;
  dead.background = {{{0}, 1e8}};
  dead.capacities = {{600 * kUs, 0, 0}};
  CHECK(end_of(dead) == -1);
  dead.background = {{{1}, 1e8}};
  CHECK(end_of(dead) == -1);
}

TEST_CASE("background traffic is there again when a dead link is back", "[sim][timed]") {
  Schedule traffic;
  traffic.background = {{{1}, 1e9}};
  const Nanos busy = end_of(traffic);
  CHECK(busy > end_of({}) + 900 * kUs);
  traffic.capacities = {{600 * kUs, 0, 0}, {600 * kUs + kSecond, 0, 1e9}};
  CHECK(end_of(traffic) == busy + kSecond);
}

TEST_CASE("checkpoints of all ranks share the storage", "[sim][timed]") {
  const pb::Outcome healthy = run_job16();
  const pb::Outcome one = run_job16({"write-checkpoint: {bytes: 100MB, rank: 0, every: 2}"});
  const pb::Outcome all = run_job16({"write-checkpoint: {bytes: 100MB, every: 2}"});
  CHECK(one.verdict() == pb::COMPLETED);
  CHECK(one.step_time_ns().each(0) == healthy.step_time_ns().each(0));
  const int64_t alone = one.step_time_ns().each(1) - healthy.step_time_ns().each(1);
  const int64_t together = all.step_time_ns().each(1) - healthy.step_time_ns().each(1);
  CHECK(alone > 0);
  CHECK(together > alone);
}

TEST_CASE("intervals that make no sense are refused", "[sim][timed]") {
  const char* const bad[] = {
      "{set: {\"platform.nodes[0].nics[0].down\": \"true\"}, from: 2s, until: 1s}",
      "{set: {\"platform.nodes[0].nics[0].down\": \"true\"}, every: 2s, until: 9s}",
      "{set: {\"platform.nodes[0].nics[0].down\": \"true\"}, every: 2s, lasting: 1s}",
      "{set: {\"platform.nodes[0].nics[0].down\": \"true\"}, every: 1s, lasting: 2s, until: 9s}",
      "{set: {\"platform.nodes[0].nics[0].down\": \"true\"}, every: 1ns, lasting: 1ns, until: 9s}",
      "{set: {launch.env.NCCL_ALGO: Ring}, from: 1s}",
      "{skip-collective: {rank: 1, nth: 1}, from: 1s}",
      "stop-rank: {at: 1s}",
      "stop-rank: {rank: 99, at: 1s}",
      "background-traffic: {from-node: 0, to-node: 0, rate: 1Gbps}",
      "background-traffic: {from-node: 0, to-node: 9, rate: 1Gbps}",
      "background-traffic: {from-node: 0, to-node: 1}",
      "pause-rank: {rank: 1, duration: 1s}",
      "pause-rank: {rank: 1, step: 9, duration: 1s}",
      "write-checkpoint: {every: 1}",
      "write-checkpoint: {bytes: 1GB, storage: tape}",
      "grow-data-parallel: {communicators: [x]}",
      "steps: {}",
  };
  for (const char* text : bad) {
    INFO(text);
    const auto outcome = try_job16({text});
    CHECK_FALSE(outcome);
    if (!outcome) CHECK_FALSE(outcome.error().fix.empty());
  }
}

}  // namespace rehearse::timed_test
