// SPDX-License-Identifier: Apache-2.0
// How runs end: hangs with their culprits, timers that act. Whole runs on 16 ranks with tensor, pipeline and
// data-parallel groups.
#include <fmt/format.h>

#include <algorithm>

#include "tests/sim/job16.hpp"

namespace rehearse::ending_test {
using namespace rehearse;
using rehearse::tests::blamed;
using rehearse::tests::run_job16;

namespace {

constexpr Nanos kSecond = 1'000'000'000;
constexpr Nanos kMillisecond = 1'000'000;

}  // namespace

TEST_CASE("a missing rank of 16 is named, not those that wait for it", "[sim][ending]") {
  const pb::Outcome healthy = run_job16();
  REQUIRE(healthy.verdict() == pb::COMPLETED);
  CHECK(healthy.timers().empty());
  for (uint32_t rank = 0; rank < 16; ++rank) {
    const uint32_t nth = (rank * 7) % 20;
    const pb::Outcome hang = run_job16({"skip-collective: {rank: " + std::to_string(rank) +
                                        ", nth: " + std::to_string(nth) + "}"});
    INFO("rank " << rank << ", collective " << nth);
    CHECK(hang.verdict() == pb::HANG);
    CHECK(blamed(hang) == std::vector<uint32_t>{rank});
    CHECK(hang.waits_size() > 0);
    CHECK(hang.last_progress_ns() > 0);
    CHECK(hang.last_progress_ns() <= healthy.end_ns());
    // The watchdog prints ten minutes after a call was enqueued that cannot end.
    REQUIRE(hang.timers_size() > 0);
    CHECK(hang.timers(0).timer() == "watchdog");
    CHECK(hang.timers(0).action() == "tear-down");
    CHECK(hang.timers(0).time_ns() > 600 * kSecond);
    CHECK(hang.timers(0).time_ns() <= hang.last_progress_ns() + 600 * kSecond);
    CHECK(hang.first_failure().time_ns() == hang.timers(0).time_ns());
    CHECK(hang.error_text(0).text().find("Timeout(ms)=600000") != std::string::npos);
  }
}

TEST_CASE("of two independent culprits both are named", "[sim][ending]") {
  const std::pair<uint32_t, uint32_t> pairs[] = {{0, 15}, {3, 8}, {5, 6}, {2, 13}};
  for (const auto& [a, b] : pairs) {
    INFO(a << " and " << b);
    const pb::Outcome hang =
        run_job16({"skip-collective: {rank: " + std::to_string(a) + ", nth: 3}",
                   "skip-collective: {rank: " + std::to_string(b) + ", nth: 3}"});
    CHECK(hang.verdict() == pb::HANG);
    CHECK(blamed(hang) == std::vector<uint32_t>{a, b});
  }
}

TEST_CASE("of two that disagree the one that does what other groups do is not to blame",
          "[sim][ending]") {
  for (const uint32_t rank : {0u, 4u, 7u, 12u}) {
    INFO("rank " << rank);
    const pb::Outcome hang =
        run_job16({"resize-collective: {rank: " + std::to_string(rank) + ", nth: 3, factor: 2}"});
    CHECK(hang.verdict() == pb::HANG);
    CHECK(blamed(hang) == std::vector<uint32_t>{rank});
  }
}

TEST_CASE("the first failure is the call that the first watchdog gives up", "[sim][ending]") {
  // Others began to wait before it, in calls that were enqueued later.
  const pb::Outcome hang = run_job16({"stop-rank: {node: 1, at: 1500us, silent: true}"});
  REQUIRE(hang.timers_size() > 0);
  const pb::Failure& failure = hang.first_failure();
  CHECK(failure.rank() == hang.timers(0).rank());
  CHECK(hang.timers(0).text().find(fmt::format("SeqNum={},", failure.sequence() + 1)) !=
        std::string::npos);
  CHECK(std::any_of(hang.waits().begin(), hang.waits().end(), [&](const pb::Wait& wait) {
    return wait.rank() == failure.rank() && wait.communicator() == failure.communicator() &&
           wait.sequence() == failure.sequence();
  }));
}

TEST_CASE("who makes a call too many is to blame, not the many that do not", "[sim][ending]") {
  const tests::TemporaryFolder folder;
  std::ofstream(folder.path / "job.yaml")
      << "trace:\n"
         "  synth: {model: gpt, layers: 2, hidden: 256, heads: 4, sequence: 128, vocabulary: 1024,"
         " micro_batch: 1, dp: 8, steps: 2, gpu: a100-sxm4-80gb, dtype: bf16, gpus_per_node: 8,"
         " framework: pytorch, seed: 1}\n"
         "platform: {like: dgx-a100, scale: 1}\n"
         "launch: {framework: pytorch, launcher: torchrun, nccl_version: 2.21.5}\n";
  SilentReporter silent;
  auto scenario = sim::load_scenario((folder.path / "job.yaml").string(), silent);
  REQUIRE(scenario);
  REQUIRE(tests::change(*scenario, "extra-collective: {rank: 5, nth: 0}"));
  const auto outcome = sim::simulate(*scenario, silent);
  REQUIRE(outcome);
  CHECK(outcome->verdict() != pb::COMPLETED);
  CHECK(blamed(*outcome) == std::vector<uint32_t>{5});
}

TEST_CASE("without error handling a hang is silent and lasts", "[sim][ending]") {
  const pb::Outcome hang = run_job16(
      {"launch.env.TORCH_NCCL_ASYNC_ERROR_HANDLING=0", "skip-collective: {rank: 6, nth: 4}"});
  CHECK(hang.verdict() == pb::HANG);
  CHECK(blamed(hang) == std::vector<uint32_t>{6});
  CHECK(hang.timers().empty());
  CHECK(hang.error_text().empty());
}

TEST_CASE("the watchdog ends a job whose collectives are merely slow", "[sim][ending]") {
  const std::string slow = "platform.nodes[1].nics[*].bandwidth=2Mbps";
  const pb::Outcome patient = run_job16({slow});
  REQUIRE(patient.verdict() == pb::COMPLETED);
  const pb::Outcome ended = run_job16({slow, "launch.collective_timeout=20ms"});
  CHECK(ended.verdict() == pb::CRASH);
  CHECK(ended.end_ns() < patient.end_ns());
  CHECK(ended.first_failure().time_ns() == ended.end_ns());
  REQUIRE(ended.timers_size() > 0);
  CHECK(ended.timers(0).timer() == "watchdog");
  CHECK(ended.error_text(0).text().find("ran for 20 milliseconds") != std::string::npos);
  REQUIRE(ended.culprits_size() == 1);
  CHECK(ended.culprits(0).kind() == "link");
  CHECK(ended.culprits(0).link().find("node1/") == 0);
  // Mode 0 looks on.
  const pb::Outcome ignored = run_job16(
      {slow, "launch.collective_timeout=20ms", "launch.env.TORCH_NCCL_ASYNC_ERROR_HANDLING=0"});
  CHECK(ignored.verdict() == pb::COMPLETED);
  CHECK(ignored.step_time_ns().mean() == patient.step_time_ns().mean());
}

TEST_CASE("the watchdog blames the rank that is late, not those that wait", "[sim][ending]") {
  const pb::Outcome ended =
      run_job16({"pause-rank: {rank: 9, step: 1, duration: 3s}", "launch.collective_timeout=1s"});
  CHECK(ended.verdict() == pb::CRASH);
  CHECK(blamed(ended) == std::vector<uint32_t>{9});
  CHECK(ended.step_time_ns().each_size() == 1);
}

TEST_CASE("the heartbeat ends what an abort does not", "[sim][ending]") {
  const std::string skip = "skip-collective: {rank: 5, nth: 3}";
  const auto first = [](const pb::Outcome& outcome, const char* timer) -> Nanos {
    for (const pb::TimerEvent& event : outcome.timers()) {
      if (event.timer() == timer) return event.time_ns();
    }
    return -1;
  };
  // Mode 1 aborts the communicators, which may get stuck: dump and heartbeat come on top.
  const pb::Outcome plain = run_job16({"launch.env.TORCH_NCCL_ASYNC_ERROR_HANDLING=1", skip});
  const Nanos watchdog = first(plain, "watchdog");
  CHECK(watchdog > 600 * kSecond);
  // And the monitor looks once a second (TORCH_NCCL_COORD_CHECK_MILSEC).
  CHECK(first(plain, "heartbeat") == watchdog + (15 + 480 + 1) * kSecond);
  const pb::Outcome set =
      run_job16({"launch.env.TORCH_NCCL_ASYNC_ERROR_HANDLING=1",
                 "launch.env.TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC=60",
                 "launch.env.TORCH_NCCL_DUMP_ON_TIMEOUT=0", "launch.collective_timeout=90s", skip});
  CHECK(first(set, "watchdog") == watchdog - 510 * kSecond);
  CHECK(first(set, "heartbeat") == first(set, "watchdog") + 61 * kSecond);
  const pb::Outcome off = run_job16({"launch.env.TORCH_NCCL_ASYNC_ERROR_HANDLING=1",
                                     "launch.env.TORCH_NCCL_ENABLE_MONITORING=0", skip});
  CHECK(first(off, "heartbeat") == -1);
  // With blocking waits it is the host that raises.
  const pb::Outcome raised = run_job16({"launch.env.TORCH_NCCL_BLOCKING_WAIT=1", skip});
  REQUIRE(raised.timers_size() > 0);
  CHECK(raised.timers(0).action() == "raise");
  CHECK(raised.timers(0).time_ns() == watchdog);
}

TEST_CASE("Horovod warns of a stall and shuts down when told to", "[sim][ending]") {
  const std::string skip = "skip-collective: {rank: 7, nth: 2}";
  const pb::Outcome warned = run_job16({"launch.framework=horovod", skip});
  CHECK(warned.verdict() == pb::HANG);
  REQUIRE(warned.timers_size() == 1);
  CHECK(warned.timers(0).timer() == "stall-check");
  CHECK(warned.timers(0).text().find("more than 60 seconds") != std::string::npos);
  const pb::Outcome off =
      run_job16({"launch.framework=horovod", "launch.env.HOROVOD_STALL_CHECK_DISABLE=1", skip});
  CHECK(off.timers().empty());
  const pb::Outcome shut = run_job16(
      {"launch.framework=horovod", "launch.env.HOROVOD_STALL_SHUTDOWN_TIME_SECONDS=120", skip});
  REQUIRE(shut.timers_size() == 2);
  CHECK(shut.timers(1).action() == "tear-down");
  CHECK(shut.timers(1).time_ns() == shut.timers(0).time_ns() + 60 * kSecond);
}

TEST_CASE("a stall of Horovod that recovers does not hide a later one", "[sim][ending]") {
  const std::string pause = "pause-rank: {rank: 1, step: 0, duration: 70s}",
                    skip = "skip-collective: {rank: 7, nth: 40}";
  const pb::Outcome shut =
      run_job16({"launch.framework=horovod", "launch.env.HOROVOD_STALL_SHUTDOWN_TIME_SECONDS=120",
                 pause, skip});
  CHECK(shut.verdict() == pb::HANG);
  REQUIRE(shut.timers_size() == 3);
  CHECK(shut.timers(0).action() == "warn");
  CHECK(shut.timers(1).action() == "warn");
  CHECK(shut.timers(2).action() == "tear-down");
  CHECK(shut.timers(2).time_ns() == shut.timers(1).time_ns() + 60 * kSecond);
  CHECK(shut.timers(2).time_ns() > 190 * kSecond);
  CHECK(shut.first_failure().time_ns() == shut.timers(1).time_ns());
  // Without a limit both are told.
  const pb::Outcome hang = run_job16({"launch.framework=horovod", pause, skip});
  CHECK(hang.verdict() == pb::HANG);
  CHECK(hang.timers_size() == 2);
}

TEST_CASE("a pause of one rank costs a step what it lasts", "[sim][ending]") {
  const pb::Outcome healthy = run_job16();
  const pb::Outcome paused = run_job16({"pause-rank: {rank: 4, step: 1, duration: 50ms}"});
  CHECK(paused.verdict() == pb::COMPLETED);
  CHECK(paused.step_time_ns().each(0) == healthy.step_time_ns().each(0));
  const int64_t longer = paused.step_time_ns().each(1) - healthy.step_time_ns().each(1);
  CHECK(longer > 40 * kMillisecond);
  CHECK(longer <= 50 * kMillisecond);
}

TEST_CASE("ranks whose NCCL variables plan a call differently hang in it", "[sim][ending]") {
  const pb::Outcome outcome =
      run_job16({"launch.ranks[3].env.NCCL_PROTO=LL", "launch.env.NCCL_PROTO=Simple"});
  CHECK(outcome.verdict() != pb::COMPLETED);
  REQUIRE(outcome.culprits_size() > 0);
  bool told = false;
  for (const pb::Culprit& culprit : outcome.culprits()) {
    told |= culprit.why().find("NCCL") != std::string::npos;
  }
  CHECK(told);
}

TEST_CASE("repeated steps take as long as the recorded ones", "[sim][ending]") {
  const pb::Outcome once = run_job16();
  const pb::Outcome often = run_job16({"steps: 5"});
  REQUIRE(often.step_time_ns().each_size() == 10);
  CHECK(often.verdict() == pb::COMPLETED);
  for (int s = 2; s < 10; ++s) {
    const auto a = static_cast<double>(often.step_time_ns().each(s));
    CHECK(a == Approx(static_cast<double>(once.step_time_ns().each(1))).epsilon(0.01));
  }
}

}  // namespace rehearse::ending_test
