// SPDX-License-Identifier: Apache-2.0
// What a start that fails in NCCL says and leaves behind.
#include <catch2/catch.hpp>
#include <fstream>

#include "sim/simulate.hpp"
#include "tests/sim/starts.hpp"
#include "tests/temporary_folder.hpp"
#include "traces/export/flight_recorder.hpp"
#include "traces/import/import.hpp"

namespace rehearse::start_test {
using namespace rehearse;
using namespace rehearse::sim;
using namespace rehearse::tests;

namespace {

using Words = std::vector<std::string>;

pb::Outcome records(const Words& settings) {
  SilentReporter silent;
  auto outcome = simulate(load("ddp-16", settings), Detail::kRecords, silent);
  REQUIRE(outcome);
  return *outcome;
}

}  // namespace

TEST_CASE("a network that NCCL_NET asks for and that is not there ends the start", "[bringup]") {
  for (const Words& settings :
       {Words{"launch.env.NCCL_NET=Infiniband"},
        Words{"launch.env.NCCL_NET=ib", "launch.env.NCCL_IB_DISABLE=1"},
        Words{"launch.env.NCCL_NET=IB", "launch.env.NCCL_IB_HCA=mlx5_0:2"}}) {
    const bringup::CameUp up = start("ddp-16", settings);
    INFO(settings.front());
    REQUIRE(up.failed);
    CHECK(up.outcome.verdict() == pb::CRASH);
    CHECK(up.outcome.bring_up().failed_in() == "interface");
    CHECK_THAT(up.outcome.error_text(0).text(), Catch::Contains("not found"));
  }
  for (const char* setting : {"launch.env.NCCL_NET=SOCKET", "launch.env.NCCL_NET=ib",
                              "launch.env.NCCL_IB_HCA=mlx5_0:2"}) {
    INFO(setting);
    CHECK_FALSE(start("ddp-16", {setting}).failed);
  }
}

TEST_CASE("ranks that write one setting differently do not disagree", "[bringup]") {
  CHECK_FALSE(
      start("ddp-16", {"launch.env.NCCL_ALGO=Ring", "launch.ranks[node=1].env.NCCL_ALGO=ring"})
          .failed);
  CHECK_FALSE(start("ddp-16", {"launch.ranks[node=1].env.NCCL_BUFFSIZE=4194304"}).failed);
  CHECK_FALSE(start("ddp-16", {"launch.env.NCCL_BUFFSIZE=0x100000",
                               "launch.ranks[node=1].env.NCCL_BUFFSIZE=1048576"})
                  .failed);
  CHECK(start("ddp-16", {"launch.env.NCCL_ALGO=Ring", "launch.ranks[node=1].env.NCCL_ALGO=Tree"})
            .failed);
}

TEST_CASE("a start that hangs in its first collective leaves dumps with that call",
          "[bringup][flight]") {
  const pb::Outcome outcome = records({"platform.nodes[1].nics[*].mtu=1024"});
  CHECK(outcome.bring_up().failed_in() == "first-collective");
  REQUIRE(outcome.flight_records_size() == 16);
  const tests::TemporaryFolder folder;
  for (const pb::FlightRecorder& recorder : outcome.flight_records()) {
    std::ofstream(folder.path / ("nccl_trace_rank_" + std::to_string(recorder.rank()) + ".json"))
        << traces::flight_recorder_json(recorder);
  }
  SilentReporter silent;
  const auto imported = traces::import_files({folder.path}, {}, silent);
  INFO((imported ? "" : imported.error().message()));
  REQUIRE(imported);
  REQUIRE(imported->trace.evidence.size() == 16);
  for (const pb::Evidence& evidence : imported->trace.evidence) {
    const pb::FlightRecorder& recorder = evidence.flight_recorder();
    REQUIRE(recorder.entries_size() == 1);
    CHECK(recorder.entries(0).state() == "started");
    CHECK(recorder.entries(0).collective_seq() == 1);
  }
}

TEST_CASE("a start that fails before a collective is recorded leaves none", "[bringup][flight]") {
  const std::string closed =
      "platform.nodes[1].firewall=[{direction: inbound, ports: 32768-60999, action: reject}]";
  for (const Words& settings :
       {Words{"launch.master_addr=10.0.200.200"},  // the store
        Words{closed},                             // ncclCommInitRank
        Words{"platform.nodes[1].nics[*].mtu=1024", "launch.env.TORCH_NCCL_DUMP_ON_TIMEOUT=0"},
        Words{"platform.nodes[1].nics[*].mtu=1024", "launch.env.TORCH_NCCL_TRACE_BUFFER_SIZE=0"}}) {
    INFO(settings.back());
    const pb::Outcome outcome = records(settings);
    CHECK_FALSE(outcome.bring_up().failed_in().empty());
    CHECK(outcome.flight_records().empty());
  }
}

TEST_CASE(
    "ranks that work alone hold the whole model and lose nothing to collectives that are gone",
    "[bringup]") {
  SilentReporter silent;
  const std::string roomy = "platform.nodes[*].gpus[*].memory=200GiB";
  const Words alone_words = {"launch.env.WORLD_SIZE=1", "launch.env.RANK=0"};
  const auto sharded = simulate(load("fsdp-32", {roomy}), silent);
  Scenario whole_job = load("fsdp-32", {roomy});
  const auto patch = parse_patch("regenerate: {zero: 0}", "test");
  REQUIRE(patch);
  REQUIRE(apply(whole_job, *patch));
  const auto whole = simulate(whole_job, silent);
  const auto alone = simulate(load("fsdp-32", {roomy, alone_words[0], alone_words[1]}), silent);
  REQUIRE(sharded);
  REQUIRE(whole);
  REQUIRE(alone);
  CHECK(alone->verdict() == pb::WRONG_SEMANTICS);
  // Its kernels were recorded beside collectives; taken for what kernels need alone, a step would be a fifth longer.
  CHECK(alone->step_time_ns().mean() < whole->step_time_ns().mean());
  CHECK(alone->step_time_ns().mean() > whole->step_time_ns().mean() * 8 / 10);
  const auto peak = [](const pb::Outcome& outcome) { return outcome.memory().ranks(0).peak(); };
  CHECK(peak(*sharded) < 40 * (Bytes{1} << 30));
  CHECK(peak(*alone) > 16 * Bytes{6'600'000'000});
  // The same without NCCL's buffers.
  CHECK(peak(*alone) < peak(*whole));
  CHECK(peak(*alone) > peak(*whole) * 99 / 100);

  const auto full = simulate(load("fsdp-32", alone_words), silent);
  REQUIRE(full);
  CHECK(full->verdict() == pb::CRASH);
  CHECK_THAT(full->error_text(0).text(), Catch::Contains("CUDA out of memory"));
}

}  // namespace rehearse::start_test
