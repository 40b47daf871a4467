// SPDX-License-Identifier: Apache-2.0
// What counts as a fix, what only looks like one, and what else it changes.
#include <catch2/catch.hpp>

#include "faults/fix/judge.hpp"
#include "faults/fix/own.hpp"
#include "faults/fix/side_effects.hpp"

namespace rehearse::fix_judge_test {
using namespace rehearse;
using namespace rehearse::faults;

namespace {

constexpr int64_t kMs = 1'000'000;

// A completed run of four steps on four ranks that exchange 100 MB in 40 calls.
pb::Outcome run_of(int64_t step) {
  pb::Outcome out;
  out.set_verdict(pb::COMPLETED);
  out.set_ranks(4);
  out.mutable_step_time_ns()->set_mean(step);
  out.mutable_step_time_ns()->set_max(step);
  for (int i = 0; i < 4; ++i) out.mutable_step_time_ns()->add_each(step);
  pb::CommunicatorUse& world = *out.add_communicators();
  world.set_calls(40);
  world.set_bytes(100'000'000);
  for (uint32_t r = 0; r < 4; ++r) {
    pb::RankBreakdown& rank = *out.add_breakdown();
    rank.set_rank(r);
    rank.set_compute(step * 9 / 10);
    pb::RankMemory& memory = *out.mutable_memory()->add_ranks();
    memory.set_rank(r);
    memory.set_peak(60LL << 30);
    memory.set_capacity(80LL << 30);
  }
  return out;
}

pb::FixTrial judged(const pb::Outcome& fixed, const pb::Outcome& broken,
                    const std::vector<pb::Patch>& patches = {}) {
  const pb::Outcome baseline = run_of(100 * kMs);
  pb::FixTrial trial;
  judge_fix({fixed, broken, baseline}, patches, trial);
  return trial;
}

std::vector<pb::Patch> patch_of(const std::string& text) {
  const auto patch = parse_own_fix(text);
  REQUIRE(patch);
  return {*patch};
}

}  // namespace

TEST_CASE("a fix restores when the step is at most 2 % longer than the healthy one",
          "[faults][fix]") {
  const pb::Outcome broken = run_of(200 * kMs);
  const pb::FixTrial good = judged(run_of(101 * kMs), broken);
  CHECK(good.restores());
  CHECK(good.recovered_ns() == 99 * kMs);
  CHECK_FALSE(judged(run_of(103 * kMs), broken).restores());
  // Faster than ever, with the same work, is no harm.
  CHECK(judged(run_of(80 * kMs), broken).restores());
}

TEST_CASE("a run that leaves work out is a false fix, however fast", "[faults][fix]") {
  const pb::Outcome broken = run_of(200 * kMs);
  pb::Outcome bytes = run_of(90 * kMs);
  bytes.mutable_communicators(0)->set_bytes(50'000'000);
  CHECK(judged(bytes, broken).false_fix().find("data is left out") != std::string::npos);
  CHECK_FALSE(judged(bytes, broken).restores());
  pb::Outcome calls = run_of(90 * kMs);
  calls.mutable_communicators(0)->set_calls(36);
  CHECK(judged(calls, broken).false_fix().find("36 collectives") != std::string::npos);
  pb::Outcome steps = run_of(100 * kMs);
  steps.mutable_step_time_ns()->mutable_each()->RemoveLast();
  CHECK(judged(steps, broken).false_fix() == "only 3 of 4 steps are made");
  pb::Outcome ranks = run_of(100 * kMs);
  ranks.set_ranks(3);
  CHECK(judged(ranks, broken).false_fix() == "3 of 4 ranks take part");
}

TEST_CASE("wrong data is a false fix", "[faults][fix]") {
  pb::Outcome wrong = run_of(100 * kMs);
  wrong.set_verdict(pb::WRONG_SEMANTICS);
  const pb::FixTrial trial = judged(wrong, run_of(200 * kMs));
  CHECK(trial.false_fix().find("wrong") != std::string::npos);
  CHECK_FALSE(trial.restores());
}

TEST_CASE("waiting longer hides a fault and does not repair it", "[faults][fix]") {
  pb::Outcome hang = run_of(0);
  hang.set_verdict(pb::HANG);
  CHECK(judged(hang, hang, patch_of("NCCL_TIMEOUT=7200")).false_fix().find("never comes") !=
        std::string::npos);
  // It runs, but the step that timed out before still takes as long.
  pb::Outcome slow = run_of(100 * kMs);
  slow.mutable_step_time_ns()->set_max(900 * kMs);
  CHECK(judged(slow, hang, patch_of("launch.collective_timeout=1h")).false_fix().find("900") !=
        std::string::npos);
  // With something else beside it, it is judged by what it does.
  std::vector<pb::Patch> both = patch_of("NCCL_TIMEOUT=7200");
  both.push_back(patch_of("NCCL_ALGO=Ring").front());
  CHECK(judged(run_of(100 * kMs), hang, both).false_fix().empty());
  CHECK(judged(run_of(100 * kMs), hang, both).restores());
}

TEST_CASE("side effects name memory, other ranks and the batch", "[faults][fix]") {
  const pb::Outcome baseline = run_of(100 * kMs), broken = run_of(200 * kMs);
  CHECK(side_effects({baseline, broken, baseline}, {}).empty());
  pb::Outcome fixed = baseline;
  fixed.mutable_memory()->mutable_ranks(2)->set_peak(66LL << 30);
  pb::Patch halved;
  halved.mutable_regenerate()->set_batch(0.5);
  const std::vector<pb::Patch> patches = {halved};
  const auto effects = side_effects({fixed, broken, baseline}, patches);
  REQUIRE(effects.size() == 2);
  CHECK(effects[0] == "memory: +6.00 GiB on rank 2, now 66.0 GiB of 80.0 GiB");
  CHECK(effects[1].find("0.5 times the samples") != std::string::npos);
  pb::Outcome moved = broken;
  moved.mutable_breakdown(1)->set_compute(250 * kMs);
  CHECK(side_effects({moved, broken, baseline}, {}).front().find("rank 1") != std::string::npos);
}

TEST_CASE("what the fault changed and the fix leaves is no side effect", "[faults][fix]") {
  const pb::Outcome baseline = run_of(100 * kMs);
  pb::Outcome broken = run_of(150 * kMs);
  for (pb::RankMemory& rank : *broken.mutable_memory()->mutable_ranks()) {
    rank.set_peak(50LL << 30);
  }
  CHECK(side_effects({broken, broken, baseline}, {}).empty());
  pb::Outcome worse = broken;
  worse.mutable_memory()->mutable_ranks(0)->set_peak(70LL << 30);
  REQUIRE(side_effects({worse, broken, baseline}, {}).size() == 1);
  CHECK(side_effects({worse, broken, baseline}, {})[0].starts_with("memory: +10.0 GiB on rank 0,"));
}

TEST_CASE("a fix of one's own is a variable, a path or a patch", "[faults][fix]") {
  const auto paths = [](const std::string& text) {
    std::vector<std::string> out;
    const std::vector<pb::Patch> patches = patch_of(text);
    for (const auto& [path, value] : patches.front().set()) out.push_back(path + "=" + value);
    return out;
  };
  using Paths = std::vector<std::string>;
  CHECK(paths("NCCL_IB_HCA=mlx5_0") == Paths{"launch.ranks[*].env.NCCL_IB_HCA=mlx5_0"});
  CHECK(paths("export NCCL_IB_HCA=mlx5_0,mlx5_1") ==
        Paths{"launch.ranks[*].env.NCCL_IB_HCA=mlx5_0,mlx5_1"});
  CHECK(paths("NCCL_IB_DISABLE=") == Paths{"launch.ranks[*].env.NCCL_IB_DISABLE="});
  CHECK(paths("node 1: NCCL_IB_DISABLE=0") == Paths{"launch.ranks[node=1].env.NCCL_IB_DISABLE=0"});
  CHECK(paths("rank 3: CUDA_VISIBLE_DEVICES=3") ==
        Paths{"launch.ranks[rank=3].env.CUDA_VISIBLE_DEVICES=3"});
  CHECK(paths("platform.nodes[0].acs=false") == Paths{"platform.nodes[0].acs=false"});
  CHECK(patch_of("undo: slow-rank").front().has_undo());
  for (const char* wrong : {"", "reboot", "make it: fast", "=1"}) {
    INFO(wrong);
    const auto refused = parse_own_fix(wrong);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == Code::kUsage);
  }
}

}  // namespace rehearse::fix_judge_test
