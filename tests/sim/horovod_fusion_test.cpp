// SPDX-License-Identifier: Apache-2.0
// Which gradients Horovod packs together: threshold, cycle, release, ranks that differ; generated and recorded jobs.
#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>
#include <numeric>

#include "sim/horovod/fusion.hpp"
#include "sim/run_program.hpp"
#include "sim/simulate.hpp"
#include "tests/sim/job16.hpp"
#include "traces/synth/fusion.hpp"

namespace rehearse::horovod_fusion_test {
using namespace rehearse;
using namespace rehearse::sim;

namespace {

using Words = std::vector<std::string>;
constexpr Bytes kMiB = Bytes{1} << 20;

Scenario job(const std::string& framework, const Words& changes = {}) {
  const tests::TemporaryFolder folder;
  std::ofstream(folder.path / "job.yaml") << fmt::format(
      "trace:\n  synth: {{model: resnet50, dp: 4, micro_batch: 32, steps: 2, gpu: v100-sxm2-32gb,"
      " dtype: fp16, gpus_per_node: 2, framework: {}, seed: 6, jitter: 0}}\n"
      "platform: {{like: dgx1-v100, scale: 2}}\n"
      "launch: {{framework: horovod, launcher: horovodrun, nccl_version: 2.14.3,"
      " ranks: [{{rank: 0}}, {{rank: 1, gpu: 1}}, {{rank: 2, node: 1}}, {{rank: 3, node: 1, gpu: "
      "1}}]}}\n",
      framework);
  SilentReporter silent;
  auto scenario = load_scenario((folder.path / "job.yaml").string(), silent);
  if (!scenario) FAIL(scenario.error().message());
  for (const std::string& text : changes) {
    INFO(text);
    const auto done = tests::change(*scenario, text);
    if (!done) FAIL(done.error().message());
  }
  return std::move(*scenario);
}

// The program that is run.
traces::Program program_with(const std::string& framework, const Words& changes) {
  const Scenario written = job(framework, changes);
  const auto start = come_up(written);
  if (!start) FAIL(start.error().message());
  const auto run = program_of_run(start->of(written));
  if (!run) FAIL(run.error().message());
  return *run->program;
}

pb::Outcome outcome_with(const std::string& framework, const Words& changes) {
  SilentReporter silent;
  auto outcome = simulate(job(framework, changes), silent);
  if (!outcome) FAIL(outcome.error().message());
  return *outcome;
}

std::vector<Bytes> sizes(const traces::RankProgram& rank) {
  std::vector<Bytes> out;
  for (const traces::Call& call : rank.calls) out.push_back(call.bytes_in);
  return out;
}

Bytes sum(const std::vector<Bytes>& each) {
  return std::accumulate(each.begin(), each.end(), Bytes{0});
}

std::string threshold(Bytes bytes) {
  return fmt::format("launch.env.HOROVOD_FUSION_THRESHOLD={}", bytes);
}

std::string cycle(const char* milliseconds) {
  return fmt::format("launch.env.HOROVOD_CYCLE_TIME={}", milliseconds);
}

}  // namespace

TEST_CASE("tensors fill buffers in their order and large ones go alone", "[synth][horovod]") {
  const std::vector<Bytes> tensors = {100, 20, 10, 500, 1, 1};
  using Counts = std::vector<size_t>;
  CHECK(synth::fusion_buffers(tensors, 1 << 20) == Counts{6});
  CHECK(synth::fusion_buffers(tensors, 0) == Counts{1, 1, 1, 1, 1, 1});
  // 100 and 20 count as 112 and 32: padded to 16 bytes.
  CHECK(synth::fusion_buffers(tensors, 150) == Counts{2, 1, 1, 2});
  CHECK(synth::fusion_buffers(tensors, 143) == Counts{1, 2, 1, 2});
  CHECK(synth::fusion_buffers({}, 8).empty());
}

TEST_CASE(
    "a smaller threshold packs a generated job into more buffers, 0 into one for each gradient",
    "[sim][horovod]") {
  const traces::Program whole = program_with("horovod", {});
  const traces::Program four = program_with("horovod", {threshold(4 * kMiB)});
  const traces::Program none = program_with("horovod", {threshold(0)});
  for (size_t r = 0; r < 4; ++r) {
    CHECK(four.ranks[r].calls.size() > whole.ranks[r].calls.size());
    CHECK(none.ranks[r].calls.size() == 2 * 161);  // ResNet-50 has 161 tensors
    CHECK(sum(sizes(four.ranks[r])) == sum(sizes(whole.ranks[r])));
    CHECK(sum(sizes(none.ranks[r])) == sum(sizes(whole.ranks[r])));
  }
  // Only what is larger by itself is beyond the threshold.
  const std::vector<Bytes> alone = sizes(none.ranks[0]);
  for (const Bytes bytes : sizes(four.ranks[0])) {
    if (bytes > 4 * kMiB) CHECK(std::ranges::count(alone, bytes) > 0);
  }
  const auto mean = [](const pb::Outcome& o) { return o.step_time_ns().mean(); };
  CHECK(mean(outcome_with("horovod", {threshold(0)})) > mean(outcome_with("horovod", {})));
}

TEST_CASE("a shorter cycle packs fewer gradients together", "[sim][horovod]") {
  const size_t usual = program_with("horovod", {}).ranks[0].calls.size();
  CHECK(program_with("horovod", {cycle("0.1")}).ranks[0].calls.size() > usual);
  CHECK(program_with("horovod", {cycle("50")}).ranks[0].calls.size() == 2);
  // The slowest rank's cycle is that of all.
  CHECK(program_with("horovod", {"launch.ranks[3].env.HOROVOD_CYCLE_TIME=50"})
            .ranks[0]
            .calls.size() == 2);
}

TEST_CASE("Horovod before 0.21 packs 64 MiB every 5 ms", "[sim][horovod]") {
  const Scenario old = job("horovod", {"launch.framework_version=0.20.3"});
  const auto packs = fusing_of(old);
  REQUIRE(packs.size() == 4);
  CHECK(packs[0].wanted.threshold == 64 * kMiB);
  CHECK(packs[0].wanted.cycle == 5'000'000);
  CHECK(packs[0].recorded.threshold == 128 * kMiB);
  const auto newer = fusing_of(job("horovod", {"launch.framework_version=0.21.0"}));
  CHECK(newer[0].wanted == newer[0].recorded);
  CHECK(fused_anew(job("horovod"))->get() == nullptr);
}

TEST_CASE("thresholds hold whole elements for each rank of a node", "[sim][horovod]") {
  CHECK(fusing_of(job("horovod", {threshold(1)}))[0].wanted.threshold == 2 * 8 * 64);
  CHECK(fusing_of(job("horovod", {threshold(0)}))[0].wanted.threshold == 0);
}

TEST_CASE("a rank that packs differently is waited for without end, unless rank 0 packs for all",
          "[sim][horovod]") {
  const std::string other = "launch.ranks[3].env.HOROVOD_FUSION_THRESHOLD=65536";
  const pb::Outcome hang = outcome_with("horovod", {other});
  CHECK(hang.verdict() == pb::HANG);
  REQUIRE(hang.culprits_size() > 0);
  CHECK(hang.culprits(0).rank() == 3);
  // Every tensor was submitted by all: Horovod has nothing to say.
  CHECK(hang.error_text_size() == 0);
  CHECK(outcome_with("horovod", {other, "launch.env.HOROVOD_CACHE_CAPACITY=0"}).verdict() ==
        pb::COMPLETED);
}

TEST_CASE("fusion buffers take memory of the GPU", "[sim][horovod][memory]") {
  const auto peak = [](const Words& changes) {
    const pb::Outcome outcome = outcome_with("horovod", changes);
    REQUIRE(outcome.memory().ranks_size() > 0);
    return outcome.memory().ranks(0).peak();
  };
  const int64_t usual = peak({});
  CHECK(peak({threshold(0)}) < usual);
  CHECK(peak({threshold(1024 * kMiB)}) - usual == 896 * kMiB);
  CHECK(outcome_with("horovod", {threshold(64 * 1024 * kMiB)}).verdict() == pb::CRASH);
}

TEST_CASE("fused calls of a recorded job are cut and joined", "[sim][horovod]") {
  const traces::Program recorded = program_with("pytorch", {});
  const std::vector<Bytes> before = sizes(recorded.ranks[1]);
  const traces::Program cut = program_with("pytorch", {threshold(2 * kMiB)});
  const std::vector<Bytes> after = sizes(cut.ranks[1]);
  CHECK(after.size() > before.size());
  CHECK(sum(after) == sum(before));
  for (const Bytes bytes : after) CHECK(bytes <= 2 * kMiB);
  const traces::Program joined = program_with("pytorch", {cycle("500")});
  CHECK(joined.ranks[1].calls.size() < before.size());
  CHECK(sum(sizes(joined.ranks[1])) == sum(before));
  for (const traces::Program* program : {&cut, &joined}) {
    const traces::RankProgram& rank = program->ranks[1];
    for (size_t c = 0; c < rank.calls.size(); ++c) {
      CHECK(rank.call[rank.call_op[c]] == c);
      CHECK(rank.calls[c].sequence == static_cast<int64_t>(c));
    }
  }
  CHECK(outcome_with("pytorch", {cycle("500")}).verdict() == pb::COMPLETED);
  CHECK(outcome_with("pytorch", {threshold(0)}).verdict() == pb::COMPLETED);
}

}  // namespace rehearse::horovod_fusion_test
