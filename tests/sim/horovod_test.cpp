// SPDX-License-Identifier: Apache-2.0
// How Horovod runs what it has fused: two levels, several streams, autotuning, cores of its thread.
#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>
#include <map>

#include "sim/horovod/autotune.hpp"
#include "sim/horovod/two_levels.hpp"
#include "sim/host/affinity.hpp"
#include "sim/run_program.hpp"
#include "sim/simulate.hpp"
#include "tests/sim/job16.hpp"

namespace rehearse::horovod_test {
using namespace rehearse;
using namespace rehearse::sim;
using traces::Collective;

namespace {

using Words = std::vector<std::string>;

Scenario job(uint32_t nodes, const Words& changes = {}) {
  const tests::TemporaryFolder folder;
  std::ofstream(folder.path / "job.yaml") << fmt::format(
      "trace:\n  synth: {{model: resnet50, dp: {}, micro_batch: 64, steps: 3, gpu: v100-sxm2-32gb,"
      " dtype: fp16, gpus_per_node: 8, framework: horovod, fusion: 8MiB, seed: 6}}\n"
      "platform: {{like: dgx1-v100, scale: {}}}\n"
      "launch: {{framework: horovod, launcher: horovodrun, nccl_version: 2.14.3}}\n",
      8 * nodes, nodes);
  SilentReporter silent;
  auto scenario = load_scenario((folder.path / "job.yaml").string(), silent);
  if (!scenario) FAIL(scenario.error().message());
  for (const std::string& text : changes) {
    const auto done = tests::change(*scenario, text);
    if (!done) FAIL(done.error().message());
  }
  return std::move(*scenario);
}

traces::Program program_with(uint32_t nodes, const Words& changes) {
  const Scenario scenario = job(nodes, changes);
  const auto run = program_of_run(scenario);
  if (!run) FAIL(run.error().message());
  return *run->program;
}

pb::Outcome outcome_with(uint32_t nodes, const Words& changes) {
  SilentReporter silent;
  auto outcome = simulate(job(nodes, changes), silent);
  if (!outcome) FAIL(outcome.error().message());
  return *outcome;
}

std::map<Collective, size_t> calls_by_kind(const traces::RankProgram& rank) {
  std::map<Collective, size_t> out;
  for (const traces::Call& call : rank.calls) ++out[call.collective];
  return out;
}

double mean(const pb::Outcome& outcome) {
  CHECK(outcome.verdict() == pb::COMPLETED);
  return static_cast<double>(outcome.step_time_ns().mean());
}

bool finds(const pb::Outcome& outcome, const std::string& id) {
  return std::any_of(outcome.findings().begin(), outcome.findings().end(),
                     [&](const pb::OutcomeFinding& each) { return each.id() == id; });
}

}  // namespace

TEST_CASE("a torus all-reduce is three collectives of NCCL in two levels", "[sim][horovod]") {
  const traces::Program flat = program_with(2, {});
  const traces::Program torus = program_with(2, {"launch.env.HOROVOD_TORUS_ALLREDUCE=1"});
  const size_t reduces = calls_by_kind(flat.ranks[9])[Collective::kAllReduce];
  REQUIRE(reduces > 0);
  auto kinds = calls_by_kind(torus.ranks[9]);
  CHECK(kinds[Collective::kReduceScatter] == reduces);
  CHECK(kinds[Collective::kAllReduce] == reduces);
  CHECK(kinds[Collective::kAllGather] == reduces);
  const traces::Call& first = torus.ranks[9].calls[0];
  const traces::Call& second = torus.ranks[9].calls[1];
  CHECK(torus.communicators[first.communicator].members ==
        std::vector<traces::RankId>{8, 9, 10, 11, 12, 13, 14, 15});
  CHECK(torus.communicators[second.communicator].members == std::vector<traces::RankId>{1, 9});
  CHECK(second.bytes_in == (flat.ranks[9].calls[0].bytes_in + 7) / 8);
  CHECK(torus.communicators[second.communicator].backend.find("mpi") == std::string::npos);
  // Every part of a call is an operation in its place.
  const traces::RankProgram& rank = torus.ranks[9];
  for (size_t c = 0; c < rank.calls.size(); ++c) CHECK(rank.call[rank.call_op[c]] == c);
}

TEST_CASE("a hierarchical all-reduce goes through hosts between nodes and costs more there",
          "[sim][horovod]") {
  const traces::Program program = program_with(2, {"launch.env.HOROVOD_HIERARCHICAL_ALLREDUCE=1"});
  const traces::Call& between = program.ranks[0].calls[1];
  CHECK(program.communicators[between.communicator].backend == "mpi");
  const double flat = mean(outcome_with(2, {}));
  const double torus = mean(outcome_with(2, {"launch.env.HOROVOD_TORUS_ALLREDUCE=1"}));
  const double hierarchical =
      mean(outcome_with(2, {"launch.env.HOROVOD_HIERARCHICAL_ALLREDUCE=1"}));
  CHECK(hierarchical > torus);
  CHECK(hierarchical != Approx(flat).epsilon(1e-4));
}

TEST_CASE("two levels are ignored on one node and need what Horovod needs", "[sim][horovod]") {
  const double one = mean(outcome_with(1, {}));
  CHECK(mean(outcome_with(1, {"launch.env.HOROVOD_HIERARCHICAL_ALLREDUCE=1"})) == one);
  CHECK(mean(outcome_with(1, {"launch.env.HOROVOD_TORUS_ALLREDUCE=1"})) == one);
  const pb::Outcome gloo = outcome_with(
      2, {"launch.env.HOROVOD_HIERARCHICAL_ALLREDUCE=1", "launch.env.HOROVOD_CONTROLLER=gloo"});
  CHECK(finds(gloo, "horovod-setting"));
  CHECK(mean(gloo) == mean(outcome_with(2, {"launch.env.HOROVOD_CONTROLLER=gloo"})));
}

TEST_CASE("a rank with another Horovod algorithm is waited for without end", "[sim][horovod]") {
  for (const char* variable : {"HOROVOD_TORUS_ALLREDUCE=1", "HOROVOD_NUM_NCCL_STREAMS=2"}) {
    INFO(variable);
    const pb::Outcome other = outcome_with(2, {fmt::format("launch.ranks[3].env.{}", variable)});
    CHECK(other.verdict() == pb::HANG);
  }
}

TEST_CASE("calls of a rank that its communicator does not list stay at one level",
          "[sim][horovod]") {
  const Scenario scenario = job(2, {"launch.env.HOROVOD_TORUS_ALLREDUCE=1"});
  traces::Program program = program_with(2, {});
  for (traces::Communicator& communicator : program.communicators) {
    std::erase_if(communicator.members, [](traces::RankId rank) { return rank % 8 == 3; });
  }
  std::vector<bool> grew(program.communicators.size(), false);
  REQUIRE(in_two_levels(scenario, program, grew));
  const auto of_missing = calls_by_kind(program.ranks[3]),
             of_member = calls_by_kind(program.ranks[4]);
  CHECK(of_missing.count(Collective::kReduceScatter) == 0);
  CHECK(of_member.count(Collective::kReduceScatter) == 1);
}

TEST_CASE("a hierarchical all-gather is for MPI", "[sim][horovod]") {
  const std::string mpi = "launch.backend=mpi";
  const std::string hierarchical = "launch.env.HOROVOD_HIERARCHICAL_ALLGATHER=1";
  // The job has all-reduces only: make them gathers.
  const auto gathers = [](const Words& changes) {
    Scenario scenario = job(2, changes);
    auto trace = std::make_shared<traces::Trace>(*scenario.trace);
    for (traces::RankTrace& rank : trace->ranks) {
      for (traces::Call& call : rank.ops.calls) {
        call.collective = Collective::kAllGather;
        call.bytes_in = call.bytes_out / 16;
      }
    }
    scenario.trace = std::move(trace);
    SilentReporter silent;
    auto outcome = simulate(scenario, silent);
    if (!outcome) FAIL(outcome.error().message());
    return *outcome;
  };
  CHECK(mean(gathers({mpi, hierarchical})) != Approx(mean(gathers({mpi}))).epsilon(1e-6));
  const pb::Outcome nccl = gathers({hierarchical});
  CHECK(finds(nccl, "horovod-setting"));
  CHECK(mean(nccl) == mean(gathers({})));
}

TEST_CASE("several streams let Horovod's collectives overlap", "[sim][horovod]") {
  const traces::Program two = program_with(2, {"launch.env.HOROVOD_NUM_NCCL_STREAMS=2"});
  const traces::Program one = program_with(2, {});
  CHECK(two.communicators.size() == 2 * one.communicators.size());
  CHECK(two.ranks[0].lanes.size() == one.ranks[0].lanes.size() + 1);
  CHECK(two.ranks[0].size() == one.ranks[0].size());
  CHECK(two.ranks[0].calls.size() == one.ranks[0].calls.size());
  // On slow ports they follow each other without a pause: while one waits, another uses them.
  const std::string slow = "platform.nodes[*].nics[*].bandwidth=1Gbps";
  const double usual = mean(outcome_with(2, {slow}));
  const double overlapped = mean(outcome_with(2, {slow, "launch.env.HOROVOD_NUM_NCCL_STREAMS=2"}));
  CHECK(overlapped < usual);
}

TEST_CASE("autotuning tries cycles at the start and leaves those it was told", "[sim][horovod]") {
  HorovodSettings settings = horovod_settings({{"HOROVOD_AUTOTUNE", "1"},
                                               {"HOROVOD_AUTOTUNE_WARMUP_SAMPLES", "1"},
                                               {"HOROVOD_AUTOTUNE_STEPS_PER_SAMPLE", "2"},
                                               {"HOROVOD_AUTOTUNE_BAYES_OPT_MAX_SAMPLES", "5"}},
                                              "");
  CHECK(tuned_cycle(settings, 1, 0) == 5'000'000);
  CHECK(tuned_cycle(settings, 1, 2) == 5'000'000);
  CHECK(tuned_cycle(settings, 1, 4) == 50'000'000);
  CHECK(tuned_cycle(settings, 1, 9) == 10'000'000);
  const Nanos drawn = tuned_cycle(settings, 1, 10);
  CHECK(drawn >= 1'000'000);
  CHECK(drawn <= 100'000'000);
  CHECK(tuned_cycle(settings, 2, 10) != drawn);
  CHECK(tuned_cycle(settings, 1, 14) == settings.cycle);
  settings.cycle_told = true;
  CHECK(tuned_cycle(settings, 1, 0) == settings.cycle);

  const Words fast = {"launch.env.HOROVOD_AUTOTUNE=1", "launch.env.HOROVOD_CYCLE_TIME=",
                      "launch.env.HOROVOD_AUTOTUNE_WARMUP_SAMPLES=0",
                      "launch.env.HOROVOD_AUTOTUNE_STEPS_PER_SAMPLE=1"};
  const pb::Outcome tuned = outcome_with(2, fast);
  REQUIRE(tuned.step_time_ns().each_size() == 3);
  CHECK(tuned.step_time_ns().each(1) > tuned.step_time_ns().each(0) + 15'000'000);
  CHECK(tuned.step_time_ns().each(2) < tuned.step_time_ns().each(1));
  CHECK(finds(tuned, "horovod-autotune"));
}

TEST_CASE("one core for all threads of a process makes its calls late", "[sim][affinity]") {
  const double usual = mean(outcome_with(2, {}));
  const Words bound = {"launch.ranks[3].cpus=1"};
  const pb::Outcome starved = outcome_with(2, bound);
  CHECK(finds(starved, "few-cores"));
  CHECK(mean(starved) > usual * 1.02);
  // Both of its threads elsewhere: NCCL's near the GPU, Horovod's on a core of its own.
  const pb::Outcome mended =
      outcome_with(2, {"launch.ranks[3].cpus=1", "launch.env.NCCL_IGNORE_CPU_AFFINITY=1",
                       "launch.env.HOROVOD_THREAD_AFFINITY=10,11,12,13,14,15,16,17"});
  CHECK(mean(mended) == usual);
  CHECK(mean(outcome_with(2, {"launch.ranks[3].cpus=0-1"})) == usual);
}

TEST_CASE("cores of the other socket slow copies, and cores that do not exist are refused",
          "[sim][affinity]") {
  Scenario scenario = job(2, {"launch.ranks[0].cpus=20-23"});
  auto trouble = trouble_with_cores(scenario.document, scenario.document.launch().ranks(0), 0);
  REQUIRE(trouble);
  CHECK(trouble->far);
  CHECK_FALSE(trouble->proxy_starved);
  scenario = job(2, {"launch.ranks[0].cpus=0-3"});
  trouble = trouble_with_cores(scenario.document, scenario.document.launch().ranks(0), 0);
  REQUIRE(trouble);
  CHECK_FALSE(trouble->far);
  for (const char* bad : {"0-4000", "first", "3-1"}) {
    scenario = job(2, {});
    scenario.document.mutable_launch()->mutable_ranks(0)->set_cpus(bad);
    const auto refused =
        trouble_with_cores(scenario.document, scenario.document.launch().ranks(0), 0);
    REQUIRE_FALSE(refused);
    CHECK_THAT(refused.error().where, Catch::Contains("cpus"));
    CHECK_FALSE(refused.error().fix.empty());
  }
}

}  // namespace rehearse::horovod_test
