// SPDX-License-Identifier: Apache-2.0
// What an outcome says of a run, against what is known of it.
#include "sim/outcome/outcome.hpp"

#include <catch2/catch.hpp>
#include <numeric>

#include "sim/outcome/retimed.hpp"
#include "sim/worker.hpp"
#include "tests/sim/job16.hpp"

namespace rehearse::outcome_test {
using namespace rehearse;
using rehearse::tests::blamed;
using rehearse::tests::change;
using rehearse::tests::job16;
using rehearse::tests::run_job16;

namespace {

sim::Scenario shipped(const std::string& name) {
  SilentReporter silent;
  auto scenario = sim::load_scenario(name, silent);
  if (!scenario) FAIL(scenario.error().message());
  return std::move(*scenario);
}

pb::Outcome run(const sim::Scenario& scenario) {
  SilentReporter silent;
  auto outcome = sim::simulate(scenario, sim::Detail::kSavings, silent);
  if (!outcome) FAIL(outcome.error().message());
  return std::move(*outcome);
}

sim::Scenario synth_ddp(uint32_t ranks) {
  const tests::TemporaryFolder folder;
  std::ofstream(folder.path / "ddp.yaml")
      << "trace: {synth: {model: resnet50, dp: " << ranks
      << ", steps: 2, micro_batch: 32, gpu: a100-sxm4-80gb, gpus_per_node: 8, jitter: 0}}\n"
         "platform: {like: dgx-a100}\n"
         "launch: {framework: pytorch, nccl_version: 2.21.5}\n";
  return shipped((folder.path / "ddp.yaml").string());
}

}  // namespace

TEST_CASE("a run timed again with nothing left out takes as long", "[sim][outcome]") {
  for (const char* name : {"ddp-16", "gpt-32", "moe-16"}) {
    INFO(name);
    const sim::Scenario scenario = shipped(name);
    SilentReporter silent;
    const auto answer = sim::in_child(
        [&](Reporter& inner) -> Result<std::string> {
          std::string text;
          auto done = sim::replay_here(scenario, inner, [&](const sim::Evidence& evidence) {
            pb::StepTimes times;
            sim::fill_step_times(sim::step_ends(evidence), times);
            text = std::to_string(sim::Retimed(evidence).step({}) - times.mean());
          });
          if (!done) return tl::unexpected(done.error());
          return text;
        },
        silent);
    if (!answer) FAIL(answer.error().message());
    // Two solvers: a nanosecond of rounding for each of some hundred calls in a row.
    CHECK(std::abs(std::stoll(*answer)) < 1000);
  }
}

TEST_CASE("the figures of a run are those of its whole outcome", "[sim][outcome]") {
  for (const char* patch :
       {"slow-rank: {rank: 6, slowdown: 2}", "skip-collective: {rank: 11, nth: 7}",
        "set: {\"launch.ranks[*].env.NCCL_IB_DISABLE\": \"1\"}"}) {
    INFO(patch);
    sim::Scenario scenario = shipped("ddp-16");
    const auto parsed = sim::parse_patch(patch, "test");
    REQUIRE(parsed);
    REQUIRE(sim::apply(scenario, *parsed));
    SilentReporter silent;
    auto whole = sim::simulate(scenario, sim::Detail::kSummary, silent);
    auto figures = sim::simulate(scenario, sim::Detail::kFigures, silent);
    REQUIRE((whole && figures));
    whole->clear_links();
    whole->clear_critical_path();
    if (whole->verdict() == pb::COMPLETED) {  // stragglers are not looked for
      whole->clear_culprits();
      figures->clear_culprits();
    }
    CHECK(whole->DebugString() == figures->DebugString());
  }
}

// All ranks alike: without the slow one a step is what it would be if it had never been slow.
TEST_CASE("without a slow rank a step is shorter by what it cost", "[sim][outcome]") {
  const sim::Scenario healthy = synth_ddp(16);
  sim::Scenario slow = healthy;
  REQUIRE(change(slow, "slow-rank: {rank: 6, slowdown: 2.0}"));
  const pb::Outcome outcome = run(slow);
  const int64_t cost = outcome.step_time_ns().mean() - run(healthy).step_time_ns().mean();
  REQUIRE(cost > 1'000'000);
  const pb::CriticalPath& path = outcome.critical_path();
  REQUIRE(path.ranks_size() > 0);
  CHECK(path.ranks(0).name() == "rank 6");
  REQUIRE(path.ranks(0).has_saving_ns());
  CHECK(std::abs(path.ranks(0).saving_ns() - cost) < 1000);
  for (const pb::Blame& row : path.operations()) {
    REQUIRE(row.has_saving_ns());
    CHECK(row.saving_ns() >= 0);
    CHECK(row.saving_ns() <= path.length_ns());
  }
  double share = 0;
  for (const pb::Blame& row : path.operations()) share += row.share();
  CHECK(share <= 1.0 + 1e-9);
}

// Not from the start: NCCL's search would lead its rings past a slow card.
TEST_CASE("a card that becomes slow in the middle of a run has the blame", "[sim][outcome]") {
  const pb::Outcome healthy = run(shipped("ddp-16"));
  sim::Scenario scenario = shipped("ddp-16");
  REQUIRE(change(scenario, "{set: {\"platform.nodes[1].nics[3].bandwidth\": 2Gbps}, from: 70ms}"));
  const pb::Outcome slow = run(scenario);
  CHECK(slow.step_time_ns().mean() > healthy.step_time_ns().mean());
  REQUIRE(slow.critical_path().links_size() > 0);
  const pb::Blame& link = slow.critical_path().links(0);
  CHECK_THAT(link.name(), Catch::StartsWith("node1/mlx5_3/"));
  // Most of what the run lost comes back without it.
  CHECK(static_cast<double>(link.saving_ns()) >
        0.8 * static_cast<double>(slow.step_time_ns().mean() - healthy.step_time_ns().mean()));
  // It is full while the others wait, by what it can carry then.
  CHECK_THAT(slow.links(0).name(), Catch::StartsWith("node1/mlx5_3/"));
  const auto& use = slow.links(0).over_time();
  CHECK(*std::max_element(use.begin(), use.end()) > 0.9);
  CHECK(*std::max_element(use.begin(), use.end()) <= 1 + 1e-9);
}

TEST_CASE("a GPU that becomes slow in the middle of a run has the blame", "[sim][outcome]") {
  sim::Scenario scenario = shipped("ddp-16");
  REQUIRE(change(scenario, "{slow-rank: {rank: 6, slowdown: 2}, from: 70ms}"));
  const pb::Outcome slow = run(scenario);
  CHECK(blamed(slow) == std::vector<uint32_t>{6});
  REQUIRE(slow.critical_path().ranks_size() > 0);
  CHECK(slow.critical_path().ranks(0).name() == "rank 6");
}

TEST_CASE("a card that others keep busy has the blame, not one as fast", "[sim][outcome]") {
  sim::Scenario scenario = shipped("ddp-16");
  REQUIRE(
      change(scenario, "background-traffic: {from-node: 0, to-node: 1, nic: 2, rate: 190Gbps}"));
  const pb::Outcome busy = run(scenario);
  bool named = false;
  for (const pb::Blame& link : busy.critical_path().links()) {
    named |= link.name().find("/mlx5_2/") != std::string::npos;
    // No other card is as full.
    if (link.name().find("/mlx5_") != std::string::npos) {
      CHECK(link.name().find("/mlx5_2/") != std::string::npos);
    }
  }
  CHECK(named);
}

TEST_CASE("use of a link over time adds up to its use", "[sim][outcome]") {
  const pb::Outcome outcome = run(shipped("ddp-16"));
  REQUIRE(outcome.links_size() > 0);
  for (const pb::LinkUse& link : outcome.links()) {
    INFO(link.name());
    REQUIRE(link.over_time_size() == 50);
    const double sum = std::accumulate(link.over_time().begin(), link.over_time().end(), 0.0);
    CHECK(sum / link.over_time_size() == Approx(link.utilisation()).epsilon(1e-6));
    for (double share : link.over_time()) CHECK(share <= 1.0 + 1e-9);
  }
}

TEST_CASE("percentiles of step times are in order", "[sim][outcome]") {
  const pb::StepTimes times =
      run_job16({"steps: 6", "pause-rank: {rank: 2, step: 3, duration: 9ms}"}).step_time_ns();
  REQUIRE(times.each_size() == 12);
  CHECK(times.min() <= times.p50());
  CHECK(times.p50() <= times.p90());
  CHECK(times.p90() <= times.p99());
  CHECK(times.p99() == times.max());
  CHECK(times.max() >= times.min() + 8'000'000);
}

TEST_CASE("a timeline has every operation of every rank", "[sim][outcome]") {
  const sim::Scenario scenario = job16();
  SilentReporter silent;
  const auto outcome = sim::simulate(scenario, sim::Detail::kTimeline, silent);
  REQUIRE(outcome);
  const pb::Timeline& timeline = outcome->timeline();
  REQUIRE(timeline.ranks_size() == 16);
  Nanos latest = 0;
  size_t operations = 0;
  for (const pb::RankTimeline& rank : timeline.ranks()) {
    for (const pb::LaneTimeline& lane : rank.lanes()) {
      REQUIRE(lane.start_size() == lane.duration_size());
      REQUIRE(lane.start_size() == lane.name_id_size());
      Nanos at = 0;
      for (int i = 0; i < lane.start_size(); ++i) {
        at += lane.start(i);
        CHECK(lane.duration(i) >= 0);
        latest = std::max(latest, at + lane.duration(i));
        ++operations;
      }
    }
  }
  CHECK(latest == outcome->end_ns());
  CHECK(operations > 1000);
  // Only when asked for.
  CHECK_FALSE(run(scenario).has_timeline());
}

TEST_CASE("memory of every rank is accounted for and fits", "[sim][outcome]") {
  for (const char* name : {"ddp-16", "fsdp-32", "gpt-32", "moe-16", "dlrm-8"}) {
    INFO(name);
    const pb::Outcome outcome = run(shipped(name));
    CHECK(static_cast<uint32_t>(outcome.memory().ranks_size()) == outcome.ranks());
    for (const pb::RankMemory& rank : outcome.memory().ranks()) {
      CHECK(rank.peak() > 0);
      CHECK(rank.peak() <= rank.capacity());
      int64_t sum = 0;
      for (const pb::MemoryPart& part : rank.parts()) sum += part.bytes();
      CHECK(sum == rank.peak());
    }
  }
}

TEST_CASE("the buffers of every protocol of NCCL are counted as the environment has them",
          "[sim][outcome]") {
  const auto buffers = [](const std::vector<std::string>& changes) {
    const pb::Outcome outcome = run_job16(changes);
    for (const pb::MemoryPart& part : outcome.memory().ranks(0).parts()) {
      if (part.name() == "NCCL buffers") return part.bytes();
    }
    return Bytes{0};
  };
  const Bytes usual = buffers({});
  CHECK(usual > 0);
  for (const char* name : {"NCCL_BUFFSIZE", "NCCL_LL128_BUFFSIZE", "NCCL_LL_BUFFSIZE"}) {
    INFO(name);
    CHECK(buffers({std::string("launch.env.") + name + "=33554432"}) > usual);
  }
}

TEST_CASE("a GPU with too little memory ends the job with the framework's words",
          "[sim][outcome]") {
  const pb::Outcome outcome = run_job16({"platform.nodes[1].gpus[2].memory=600MiB"});
  CHECK(outcome.verdict() == pb::CRASH);
  CHECK(blamed(outcome) == std::vector<uint32_t>{10});
  CHECK(outcome.first_failure().rank() == 10);
  REQUIRE(outcome.error_text_size() == 1);
  CHECK(outcome.error_text(0).rank() == 10);
  CHECK(outcome.error_text(0).text().find("CUDA out of memory. Tried to allocate") !=
        std::string::npos);
}

TEST_CASE("a grown job behaves like one of that size", "[sim][outcome]") {
  sim::Scenario grown = synth_ddp(16);
  REQUIRE(change(grown, "grow-data-parallel: 4"));
  const pb::Outcome large = run(synth_ddp(64)), same = run(grown);
  CHECK(same.ranks() == 64);
  CHECK(same.verdict() == pb::COMPLETED);
  CHECK(static_cast<double>(same.step_time_ns().mean()) ==
        Approx(static_cast<double>(large.step_time_ns().mean())).epsilon(0.01));
  // Only the recorded ranks are replayed.
  CHECK(same.breakdown_size() == 16);
  REQUIRE(same.communicators_size() > 0);
  CHECK(same.communicators(0).ranks() == 64);
}

TEST_CASE("changes made before and after growing both hold", "[sim][outcome]") {
  const std::string slow = "platform.nodes[*].nics[*].bandwidth=20Gbps";
  sim::Scenario before = synth_ddp(16), after = synth_ddp(16);
  REQUIRE(change(before, slow));
  REQUIRE(change(before, "grow-data-parallel: 2"));
  REQUIRE(change(after, "grow-data-parallel: 2"));
  REQUIRE(change(after, slow));
  CHECK(run(before).step_time_ns().mean() == run(after).step_time_ns().mean());
  CHECK(before.document.platform().nodes_size() == 4);
}

TEST_CASE("replicas of tensor and pipeline groups do not grow", "[sim][outcome]") {
  const pb::Outcome once = run_job16();
  const pb::Outcome grown = run_job16({"grow-data-parallel: 4"});
  CHECK(grown.verdict() == pb::COMPLETED);
  CHECK(grown.ranks() == 64);
  for (const pb::CommunicatorUse& use : grown.communicators()) {
    const auto same = std::find_if(once.communicators().begin(), once.communicators().end(),
                                   [&](const auto& other) { return other.id() == use.id(); });
    REQUIRE(same != once.communicators().end());
    const bool data = use.id().rfind("dp", 0) == 0 || same->ranks() == 16;
    INFO(use.id());
    CHECK((use.ranks() == same->ranks() || data));
  }
  CHECK(grown.step_time_ns().mean() >= once.step_time_ns().mean());
}

}  // namespace rehearse::outcome_test
