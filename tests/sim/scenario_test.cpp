// SPDX-License-Identifier: Apache-2.0
// Whole runs of shipped scenarios: from YAML to outcome, with SimGrid.
#include "sim/scenario/scenario.hpp"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "sim/prepared.hpp"
#include "sim/simulate.hpp"
#include "tests/sim/job16.hpp"
#include "tests/temporary_folder.hpp"
#include "traces/model/rtrace.hpp"

namespace rehearse::scenario_test {
using namespace rehearse;
using namespace rehearse::sim;

namespace {

Scenario load(const std::string& what) {
  SilentReporter silent;
  auto scenario = load_scenario(what, silent);
  if (!scenario) FAIL(scenario.error().message());
  return std::move(*scenario);
}

pb::Outcome run(const Scenario& scenario) {
  SilentReporter silent;
  auto outcome = simulate(scenario, silent);
  if (!outcome) FAIL(outcome.error().message());
  return std::move(*outcome);
}

void patch(Scenario& scenario, const std::string& yaml) {
  auto parsed = parse_patch(yaml, "test");
  if (!parsed) FAIL(parsed.error().message());
  const auto applied = apply(scenario, *parsed);
  if (!applied) FAIL(applied.error().message());
}

void set(Scenario& scenario, const std::string& assignment) {
  auto parsed = parse_assignment(assignment);
  if (!parsed) FAIL(parsed.error().message());
  const auto applied = apply(scenario, *parsed);
  if (!applied) FAIL(applied.error().message());
}

// A scenario file in a folder that goes with the test.
struct File {
  explicit File(const std::string& text) { std::ofstream(path) << text; }
  tests::TemporaryFolder folder;
  std::filesystem::path path = folder.path / "job.yaml";
};

}  // namespace

TEST_CASE("a trace without a platform runs on machines with its GPUs", "[sim][scenario]") {
  struct Row {
    const char* model;
    Bytes memory;
    const char* platform;
  };
  const tests::TemporaryFolder folder;
  const std::string file = (folder.path / "job.rtrace").string();
  const std::vector<Row> rows = {{"NVIDIA A100-SXM4-80GB", 0, "DGX A100"},
                                 {"NVIDIA A100-PG509-200", 42'505'273'344, "DGX A100 40GB"},
                                 {"NVIDIA H100 PCIe", 0, "DGX H100"},
                                 {"Tesla V100-SXM2-32GB", 0, "DGX-1"},
                                 {"AMD Instinct MI300X", 0, "MI300X"},
                                 {"NVIDIA GeForce RTX 3090", 0, "3090"},
                                 {"Something else", 0, "DGX H100"},
                                 {"", 0, "DGX H100"}};
  for (const Row& row : rows) {
    INFO(row.model);
    traces::Trace trace = *tests::job16().trace;
    trace.ranks.front().gpu_model = row.model;
    trace.ranks.front().gpu_memory = row.memory;
    REQUIRE(traces::write_rtrace(trace, file, Overwrite::kReplace));
    const Scenario scenario = load(file);
    CHECK_THAT(
        scenario.document.platform().name() + scenario.document.platform().nodes(0).gpus(0).model(),
        Catch::Contains(row.platform));
    CHECK(scenario.findings.count("platform-assumed") == 1);
  }
}

TEST_CASE("every shipped scenario completes with nobody to blame", "[sim][scenario]") {
  const auto shipped = shipped_scenarios();
  REQUIRE(shipped);
  REQUIRE(shipped->size() >= 7);
  for (const ShippedScenario& scenario : *shipped) {
    INFO(scenario.name);
    CHECK_FALSE(scenario.description.empty());
    const pb::Outcome outcome = run(load(scenario.name));
    CHECK(outcome.verdict() == pb::COMPLETED);
    CHECK(outcome.culprits().empty());
    CHECK(outcome.synthetic());
    CHECK(outcome.step_time_ns().mean() > 0);
    for (const pb::RankBreakdown& rank : outcome.breakdown()) {
      CHECK(rank.compute() + rank.communication() + rank.wait() + rank.host() + rank.idle() ==
            rank.step());
      CHECK(rank.idle() >= 0);
    }
  }
}

TEST_CASE("the same scenario gives the same bytes", "[sim][scenario]") {
  const Scenario scenario = load("moe-16");
  CHECK(run(scenario).SerializeAsString() == run(scenario).SerializeAsString());
}

TEST_CASE("a skipped collective is blamed on the rank that skipped it", "[sim][scenario]") {
  for (uint32_t rank : {3u, 11u, 29u}) {
    Scenario scenario = load("gpt-32");
    patch(scenario, "skip-collective: {rank: " + std::to_string(rank) + ", nth: 5}");
    const pb::Outcome outcome = run(scenario);
    CHECK(outcome.verdict() == pb::HANG);
    REQUIRE(outcome.culprits_size() == 1);
    CHECK(outcome.culprits(0).rank() == rank);
    CHECK_FALSE(outcome.waits().empty());
    CHECK_FALSE(outcome.error_text().empty());
  }
}

TEST_CASE("two ranks that skip collectives are both blamed", "[sim][scenario]") {
  Scenario scenario = load("gpt-32");
  patch(scenario, "skip-collective: {rank: 3, nth: 5}");
  patch(scenario, "skip-collective: {rank: 12, nth: 9}");
  const pb::Outcome outcome = run(scenario);
  CHECK(outcome.verdict() == pb::HANG);
  REQUIRE(outcome.culprits_size() == 2);
  CHECK(outcome.culprits(0).rank() == 3);
  CHECK(outcome.culprits(1).rank() == 12);
}

TEST_CASE("a slow GPU makes everyone wait and is named", "[sim][scenario]") {
  const Scenario healthy = load("ddp-16");
  const int64_t before = run(healthy).step_time_ns().mean();
  Scenario slow = healthy;
  patch(slow, "slow-rank: {rank: 6, slowdown: 2.0}");
  const pb::Outcome outcome = run(slow);
  CHECK(outcome.step_time_ns().mean() > before * 3 / 2);
  REQUIRE(outcome.culprits_size() == 1);
  CHECK(outcome.culprits(0).rank() == 6);

  Scenario throttled = healthy;
  set(throttled, "platform.nodes[0].gpus[6].speed=0.5");
  CHECK(run(throttled).step_time_ns().mean() == outcome.step_time_ns().mean());
}

TEST_CASE("a slow rank of a pipeline is named, not the stage that comes late for it",
          "[sim][scenario]") {
  const auto named = [](const std::vector<uint32_t>& ranks) {
    Scenario scenario = load("gpt-32");
    for (const uint32_t rank : ranks) {
      patch(scenario, "slow-rank: {rank: " + std::to_string(rank) + ", slowdown: 1.5}");
    }
    std::vector<uint32_t> out;
    const pb::Outcome outcome = run(scenario);
    for (const pb::Culprit& culprit : outcome.culprits()) {
      CHECK(culprit.kind() == "rank");
      out.push_back(culprit.rank());
    }
    return out;
  };
  for (const uint32_t rank : {5u, 20u, 31u}) CHECK(named({rank}) == std::vector{rank});
  CHECK(named({3, 26}) == std::vector{3u, 26u});
}

TEST_CASE("undoing a transform gives the healthy run back", "[sim][scenario]") {
  Scenario scenario = load("ddp-16");
  const std::string healthy = run(scenario).step_time_ns().SerializeAsString();
  patch(scenario, "skip-collective: {rank: 3, nth: 2}");
  CHECK(run(scenario).verdict() == pb::HANG);
  patch(scenario, "undo: skip-collective");
  CHECK(run(scenario).step_time_ns().SerializeAsString() == healthy);
}

TEST_CASE("undoing a transform on one of several ranks leaves the others as they are",
          "[sim][scenario]") {
  Scenario scenario = load("ddp-16");
  patch(scenario, "slow-rank: {ranks: 8-15, slowdown: 2}");
  patch(scenario, "{slow-rank: {ranks: 3, slowdown: 2}, from: 1ms}");
  patch(scenario, "undo: {transform: slow-rank, rank: 10}");
  REQUIRE(scenario.transforms.size() == 1);
  CHECK(scenario.transforms[0].slow_rank().ranks() == "8-9,11-15");
  patch(scenario, "undo: {transform: slow_rank, rank: 3}");
  CHECK(scenario.timed.empty());
  CHECK(scenario.transforms.size() == 1);
  patch(scenario, "undo: {transform: slow-rank, rank: 4}");
  CHECK(scenario.transforms.size() == 1);
  patch(scenario, "undo: slow-rank");
  CHECK(scenario.transforms.empty());
}

TEST_CASE("undoing what is like a patch leaves what is on other ranks or does another thing",
          "[sim][scenario]") {
  Scenario scenario = load("ddp-16");
  patch(scenario, "slow-rank: {ranks: 8-15, slowdown: 2}");
  patch(scenario, "undo: {transform: slow-rank, like: [{slow-rank: {rank: 8, slowdown: 2}}]}");
  CHECK(scenario.transforms.size() == 1);
  patch(scenario, "pause-rank: {rank: 3, step: 0, duration: 1ms}");
  patch(scenario,
        "undo: {transform: pause-rank, like: [{pause-rank: {every: 1, rank: 3, duration: 1ms}}]}");
  CHECK(scenario.transforms.size() == 2);
  // Strength and the way ranks are written do not matter.
  patch(scenario,
        "undo: {transform: slow-rank, like: [{slow-rank: {ranks: '12-15,8-11', slowdown: 3}}]}");
  patch(scenario,
        "undo: {transform: pause-rank, like: [{pause-rank: {rank: 3, step: 2, duration: 1s}}]}");
  CHECK(scenario.transforms.empty());
}

TEST_CASE("patches are told as they can be typed again", "[sim][scenario]") {
  struct Row {
    const char* patch;
    const char* told;
  };
  const Row rows[] = {
      {"{skip_collective: {nth: 7, rank: 11}}", "skip-collective: {rank: 11, nth: 7}"},
      {"undo: {transform: skip-collective}", "undo: skip-collective"},
      {"{from: 1500us, slow-rank: {rank: 3, slowdown: 2.5}}",
       "{slow-rank: {rank: 3, slowdown: 2.5}, from: 1.5ms}"},
      {"{until: 2s, set: {\"platform.nodes[1].nics[0].down\": \"true\"}}",
       "{set: {\"platform.nodes[1].nics[0].down\": \"true\"}, until: 2s}"},
      {"stop-rank: {node: 1, at: 2s, silent: true, text: 'Bus error (core dumped), pid 7'}",
       "stop-rank: {node: 1, at: 2s, silent: true, text: \"Bus error (core dumped), pid 7\"}"},
      {"background-traffic: {from-node: 0, to-node: 1, rate: 50Gbps}",
       "background-traffic: {from-node: 0, to-node: 1, rate: 6.25GB/s}"},
  };
  for (const Row& row : rows) {
    Scenario scenario = load("ddp-16");
    patch(scenario, row.patch);
    REQUIRE(scenario.applied.size() == 1);
    CHECK(scenario.applied[0] == row.told);
    const auto again = parse_patch(scenario.applied[0], "again");
    REQUIRE(again);
    CHECK(again->SerializeAsString() == parse_patch(row.patch, "first")->SerializeAsString());
  }
  Scenario scenario = load("ddp-16");
  set(scenario, "launch.env.NCCL_ALGO=Tree");
  CHECK(scenario.applied[0] == "launch.env.NCCL_ALGO=Tree");
}

TEST_CASE("one node without InfiniBand puts the job on sockets", "[sim][scenario]") {
  Scenario scenario = load("ddp-16");
  CHECK(run(scenario).communicators(0).transport() == "NET/IB/GDRDMA");
  set(scenario, "launch.ranks[node=1].env.NCCL_IB_DISABLE=1");
  const pb::Outcome outcome = run(scenario);
  CHECK(outcome.verdict() == pb::COMPLETED);
  CHECK(outcome.communicators(0).transport() == "NET/Socket");
  CHECK(outcome.communicators(0).offered() == "NET/IB/GDRDMA");
}

TEST_CASE("slower cards never make a job faster", "[sim][scenario]") {
  int64_t last = 0;
  for (const char* bandwidth : {"400Gbps", "200Gbps", "100Gbps", "50Gbps", "10Gbps"}) {
    Scenario scenario = load("fsdp-32");
    set(scenario, std::string("platform.nodes[*].nics[*].bandwidth=") + bandwidth);
    const int64_t step = run(scenario).step_time_ns().mean();
    INFO(bandwidth);
    CHECK(step >= last);
    last = step;
  }
}

TEST_CASE("a patch that fails leaves the scenario as it was", "[sim][scenario]") {
  Scenario scenario = load("dlrm-8");
  const std::string before = scenario.document.SerializeAsString();
  pb::Patch broken;
  (*broken.mutable_set())["launch.nccl_version"] = "2.18.1";
  (*broken.mutable_set())["platform.nodes[0].nics[*].bandwidth"] = "-5Gbps";
  const auto applied = apply(scenario, broken);
  REQUIRE_FALSE(applied);
  CHECK(applied.error().code == Code::kBadInput);
  CHECK(scenario.document.SerializeAsString() == before);
  CHECK(scenario.applied.empty());
  // Nor do assignments beside a transform that cannot be.
  for (const char* text : {"{set: {launch.nccl_version: 2.18.1}, undo: slow-ranks}",
                           "{set: {launch.nccl_version: 2.18.1}, regenerate: {tp: 7}}",
                           "{set: {launch.nccl_version: 2.18.1}, grow-data-parallel: 65536}"}) {
    INFO(text);
    const auto patch = parse_patch(text, "test");
    REQUIRE(patch);
    CHECK_FALSE(apply(scenario, *patch));
    CHECK(scenario.document.SerializeAsString() == before);
    CHECK(scenario.applied.empty());
    CHECK(scenario.transforms.empty());
    CHECK(scenario.recorded == nullptr);
    CHECK(scenario.origin.edits_size() == 0);
  }
}

TEST_CASE("a transform of a rank that is not there says which there are", "[sim][scenario]") {
  Scenario scenario = load("dlrm-8");
  patch(scenario, "slow-rank: {rank: 99, slowdown: 2}");
  SilentReporter silent;
  const auto outcome = simulate(scenario, silent);
  REQUIRE_FALSE(outcome);
  CHECK(outcome.error().code == Code::kBadInput);
  CHECK(outcome.error().message().find("0 to 7") != std::string::npos);
}

TEST_CASE("scenarios that make no sense are refused with a place and a remedy", "[sim][scenario]") {
  struct Row {
    const char* text;
    Code code;
    const char* says;
  };
  const Row rows[] = {
      {"trace: ddp-16\nplatfrom: dgx-a100\n", Code::kBadInput, "job.yaml:2:1"},
      {"trace: ddp-16\nplatform: dgx-a101\n", Code::kMissingInput, "dgx-a100"},
      {"trace: nowhere.rtrace\n", Code::kMissingInput, "nowhere.rtrace"},
      {"platform: dgx-a100\n", Code::kBadInput, "trace"},
      {"trace: ddp-16\nplatform: {like: dgx-a100, scale: 1}\n", Code::kBadInput, "scale"},
      {"trace: ddp-16\nlaunch: {ranks: [{rank: 0, node: 9}]}\n", Code::kBadInput, "node 9"},
      {"trace: ddp-16\nlaunch: {ranks: [{rank: 77}]}\n", Code::kBadInput, "77"},
      {"trace: ddp-16\nlaunch: {master_port: 70000}\n", Code::kBadInput, "job.yaml:2:"},
  };
  SilentReporter silent;
  for (const Row& row : rows) {
    INFO(row.text);
    const File file(row.text);
    const auto scenario = load_scenario(file.path.string(), silent);
    REQUIRE_FALSE(scenario);
    CHECK(scenario.error().code == row.code);
    INFO(scenario.error().message());
    CHECK(scenario.error().message().find(row.says) != std::string::npos);
  }
}

TEST_CASE("patches that cannot be or change nothing are refused or said", "[sim][scenario]") {
  const Scenario scenario = load("ddp-16");
  for (const char* path :
       {"platform.like=dgx-h100", "platform.scale=8", "trace.file=/nope", "trace=x",
        "platform.nodes[1]=", "launch.ranks[3].node=7", "launch.ranks[3].gpu=99",
        "platform.nodes[0].gpus=[]", "platform.nodes[0].gpus[0].speed=0"}) {
    INFO(path);
    Scenario edited = scenario;
    const auto patched = parse_assignment(path);
    REQUIRE(patched);
    const auto applied = apply(edited, *patched);
    REQUIRE_FALSE(applied);
    CHECK(applied.error().code == Code::kBadInput);
    CHECK_FALSE(applied.error().fix.empty());
  }
  struct Row {
    const char* assignment;
    size_t warnings;
  };
  for (const Row& row :
       {Row{"platform.nodes[0].nics[0].latency=1h", 1}, Row{"platform.nodes[0].memory=1GiB", 1},
        Row{"platform.nodes[0].gpus[0].memory=1GiB", 0},
        Row{"platform.nodes[0].gpus[0].flops.bf16=1TFLOPS", 1},
        Row{"platform.fabric.hop-latency=1us", 1}, Row{"platform.efficiency.compute=0.5", 1},
        Row{"platform.efficiency.nvlink=0.5", 0}, Row{"launch.env.memory=1", 0}}) {
    INFO(row.assignment);
    Scenario edited = scenario;
    set(edited, row.assignment);
    CHECK(edited.findings.count("not-simulated") == row.warnings);
  }
}

TEST_CASE("assignments beside grow-data-parallel hold on the nodes that are added",
          "[sim][scenario]") {
  Scenario scenario = load("ddp-16");
  const auto patch = parse_patch(
      "{set: {\"platform.nodes[1].nics[*].bandwidth\": 50Gbps}, grow-data-parallel: 2}", "test");
  REQUIRE(patch);
  REQUIRE(apply(scenario, *patch));
  REQUIRE(scenario.document.platform().nodes_size() == 4);
  CHECK(scenario.document.platform().nodes(1).nics(0).bandwidth() == 6.25e9);
  CHECK(scenario.document.platform().nodes(0).nics(0).bandwidth() > 6.25e9);
}

TEST_CASE("memory patches without their figure or with a rank that is not there are refused",
          "[sim][scenario]") {
  for (const char* text : {"scale-memory: {part: activations}", "leak-memory: {rank: 3}"}) {
    INFO(text);
    CHECK_FALSE(parse_patch(text, "test"));
  }
  for (const char* text : {"scale-memory: {rank: 99, part: activations, factor: 2}",
                           "leak-memory: {rank: 99, bytes: 1MiB}"}) {
    INFO(text);
    Scenario scenario = load("ddp-16");
    patch(scenario, text);
    SilentReporter silent;
    CHECK_FALSE(simulate(scenario, silent));
  }
}

TEST_CASE("two ranks on one GPU are refused as NCCL refuses them", "[sim][scenario]") {
  Scenario scenario = load("ddp-16");
  set(scenario, "launch.ranks[3].gpu=0");
  SilentReporter silent;
  const auto outcome = simulate(scenario, silent);
  REQUIRE(outcome);
  CHECK(outcome->verdict() == pb::CRASH);
  CHECK(outcome->error_text(0).text().find("Duplicate GPU detected : rank 0 and rank 3") !=
        std::string::npos);
}

TEST_CASE("a run that would take for ever ends at a limit, not in a wrong number",
          "[sim][scenario]") {
  SilentReporter silent;
  Scenario network = load("ddp-16");
  set(network, "platform.nodes[*].nics[*].bandwidth=0.000000001bps");
  const auto slow = simulate(network, silent);
  REQUIRE_FALSE(slow);
  CHECK(slow.error().code == Code::kLimit);
  CHECK_FALSE(parse_patch("slow-rank: {rank: 1}", "test"));
  CHECK_FALSE(parse_patch("slow-rank: {rank: 1, slowdown: 1e300}", "test"));
}

TEST_CASE("Horovod names the rank that is missing", "[sim][scenario]") {
  Scenario scenario = load("horovod-16");
  patch(scenario, "skip-collective: {rank: 5, nth: 1}");
  const pb::Outcome outcome = run(scenario);
  CHECK(outcome.verdict() == pb::HANG);
  REQUIRE(outcome.error_text_size() == 1);
  CHECK(outcome.error_text(0).text().find("[missing ranks: 5]") != std::string::npos);
}

TEST_CASE("what is prepared ahead of variants changes none of their bytes", "[sim][scenario]") {
  for (const char* name : {"ddp-16", "moe-16"}) {
    const Scenario plain = load(name);
    Scenario ready = plain;
    prepare(ready);
    REQUIRE(ready.prepared != nullptr);
    for (const char* change :
         {"seed=2", "platform.nodes[*].nics[*].bandwidth=50Gbps",
          "platform.nodes[1].nics[2].down=true", "platform.fabric.sharp=true",
          "launch.ranks[*].env.NCCL_P2P_LEVEL=LOC", "launch.ranks[node=1].env.NCCL_IB_DISABLE=1",
          "slow-rank: {rank: 3, slowdown: 2}", "skip-collective: {rank: 3, nth: 5}", "steps: 2",
          "regenerate: {batch: 2}"}) {
      INFO(name << " " << change);
      Scenario a = plain, b = ready;
      const bool assignment = std::string_view(change).find('=') != std::string_view::npos;
      assignment ? set(a, change) : patch(a, change);
      assignment ? set(b, change) : patch(b, change);
      CHECK(run(a).SerializeAsString() == run(b).SerializeAsString());
    }
  }
}

TEST_CASE("an unknown scenario names the nearest one", "[sim][scenario]") {
  SilentReporter silent;
  const auto scenario = load_scenario("dpp-16", silent);
  REQUIRE_FALSE(scenario);
  CHECK(scenario.error().code == Code::kMissingInput);
  CHECK(scenario.error().fix.find("ddp-16") != std::string::npos);
}

TEST_CASE("an assignment splits at the first equals sign outside brackets", "[sim][scenario]") {
  const auto patched = parse_assignment("launch.ranks[node=1].env.A=b=c");
  REQUIRE(patched);
  CHECK(patched->set().at("launch.ranks[node=1].env.A") == "b=c");
  CHECK_FALSE(parse_assignment("no-equals"));
  CHECK_FALSE(parse_assignment("=5"));
}

}  // namespace rehearse::scenario_test
