// SPDX-License-Identifier: Apache-2.0
// What holds for patches of every job, over random ones: whole simulations with the real models.
#include "base/document.hpp"
#include "base/install.hpp"
#include "platforms/model/catalogue.hpp"
#include "sim/simulate.hpp"
#include "tests/sim/property.hpp"
#include "tests/sim/random_job.hpp"
#include "tests/temporary_folder.hpp"
#include "traces/model/rtrace.hpp"
#include "traces/synth/synth.hpp"

namespace rehearse::patch_properties_test {
using namespace rehearse;
using namespace rehearse::sim;
using tests::holds;
using tests::Job;

namespace {

pb::Outcome outcome_of(const Scenario& scenario) {
  SilentReporter silent;
  auto outcome = simulate(scenario, silent);
  if (!outcome) RC_FAIL(outcome.error().message());
  return std::move(*outcome);
}

void patched(Scenario& scenario, const std::string& yaml) {
  const auto patch = parse_patch(yaml, "test");
  if (!patch) RC_FAIL(patch.error().message());
  const auto done = apply(scenario, *patch);
  if (!done) RC_FAIL(done.error().message());
}

// Assignments that every scenario of one node takes.
using Pairs = std::vector<std::pair<std::string, std::string>>;

std::pair<std::string, std::string> random_assignment(const Job& job) {
  const uint32_t rank = *rc::gen::inRange<uint32_t>(0, job.ranks);
  const Pairs all = {{"launch.ranks[*].env.NCCL_ALGO", "Tree"},
                     {"launch.ranks[*].env.NCCL_PROTO", "LL"},
                     {fmt::format("launch.ranks[{}].env.NCCL_DEBUG", rank), "INFO"},
                     {"launch.ranks[*].env.NCCL_MAX_NCHANNELS", "2"},
                     {"platform.nodes[0].gpus[*].speed", "0.5"},
                     {fmt::format("platform.nodes[0].gpus[{}].speed", rank), "0.75"},
                     {"platform.nodes[0].nics[*].bandwidth", "10Gbps"},
                     {"launch.env.OMP_NUM_THREADS", "4"}};
  return *rc::gen::elementOf(all);
}

// What the run did, without what it was made from.
std::string run_of(pb::Outcome outcome) {
  outcome.clear_patches();
  outcome.clear_origin();
  return outcome.SerializeAsString();
}

}  // namespace

TEST_CASE("an assignment made twice is an assignment", "[properties]") {
  holds("idempotence", [](const Job& job) {
    const auto [path, value] = random_assignment(job);
    Scenario once = tests::scenario_of(job);
    patched(once, fmt::format("set: {{\"{}\": \"{}\"}}", path, value));
    Scenario twice = once;
    patched(twice, fmt::format("set: {{\"{}\": \"{}\"}}", path, value));
    RC_ASSERT(once.document.SerializeAsString() == twice.document.SerializeAsString());
    RC_ASSERT(run_of(outcome_of(once)) == run_of(outcome_of(twice)));
  });
}

TEST_CASE("an assignment and its inverse leave the scenario as it was", "[properties]") {
  holds("inverse", [](const Job& job) {
    const Scenario before = tests::scenario_of(job);
    const auto [path, value] = random_assignment(job);
    const auto old = get_path(before.document, path);
    Scenario after = before;
    patched(after, fmt::format("set: {{\"{}\": \"{}\"}}", path, value));
    // A path that selects several gives a line each; those of a machine of the catalogue are equal.
    const std::string text = old ? old->substr(0, old->find('\n')) : "";
    const auto set = set_path(after.document, path, text);
    if (!set) RC_FAIL(set.error().message());
    const auto restored = get_path(after.document, path);
    RC_ASSERT(restored.has_value() == old.has_value() || text.empty());
    RC_ASSERT(run_of(outcome_of(after)) == run_of(outcome_of(before)));
  });
}

TEST_CASE("what is undone never was", "[properties]") {
  holds("undo", [](const Job& job) {
    const Scenario before = tests::scenario_of(job);
    const uint32_t rank = *rc::gen::inRange<uint32_t>(0, job.ranks);
    const Pairs all = {
        {"slow-rank", fmt::format("slow-rank: {{rank: {}, slowdown: 2.5}}", rank)},
        {"pause-rank", fmt::format("pause-rank: {{rank: {}, step: 0, duration: 3ms}}", rank)},
        {"slow-host", "slow-host: {slowdown: 3}"},
        {"no-overlap", "no-overlap: {}"},
        {"scale-collectives", "scale-collectives: 2"},
        {"vary-steps", "vary-steps: 0.2"}};
    const auto [name, patch] = *rc::gen::elementOf(all);
    Scenario after = before;
    patched(after, patch);
    patched(after, "undo: " + name);
    RC_ASSERT(run_of(outcome_of(after)) == run_of(outcome_of(before)));
  });
}

TEST_CASE("a job grown once, repeated once or slowed by one is itself", "[properties]") {
  holds("identities", [](const Job& job) {
    const Scenario before = tests::scenario_of(job);
    Scenario after = before;
    patched(after, *rc::gen::element<std::string>(
                       "grow-data-parallel: 1", "steps: 1", "slow-rank: {rank: 0, slowdown: 1}",
                       "slow-host: {slowdown: 1}", "scale-collectives: 1"));
    RC_ASSERT(run_of(outcome_of(after)) == run_of(outcome_of(before)));
  });
}

TEST_CASE("a run hangs if and only if somebody is to blame for it", "[properties]") {
  holds("hang", [](const Job& job) {
    Scenario scenario = tests::scenario_of(job);
    // Watchdogs turn a hang into an abort; without them it stays one.
    const bool skips = job.collectives() > 0 && *rc::gen::arbitrary<bool>();
    if (skips) {
      patched(scenario, fmt::format("skip-collective: {{rank: {}, nth: {}}}",
                                    *rc::gen::inRange<uint32_t>(0, job.ranks),
                                    *rc::gen::inRange<uint32_t>(0, job.collectives())));
    }
    const pb::Outcome outcome = outcome_of(scenario);
    RC_LOG(outcome.ShortDebugString().substr(0, 2000));
    const bool stuck = outcome.verdict() == pb::HANG || outcome.verdict() == pb::CRASH;
    RC_ASSERT(stuck == !outcome.waits().empty());
    if (stuck) RC_ASSERT(!outcome.culprits().empty());
    if (!skips) RC_ASSERT(outcome.verdict() == pb::COMPLETED);
    RC_ASSERT(outcome.end_ns() >= 0);
    for (const int64_t step : outcome.step_time_ns().each()) RC_ASSERT(step >= 0);
    for (const pb::RankBreakdown& rank : outcome.breakdown()) {
      RC_ASSERT(rank.compute() >= 0 && rank.communication() >= 0 && rank.wait() >= 0 &&
                rank.host() >= 0 && rank.idle() >= 0);
    }
  });
}

TEST_CASE("any number of threads writes and reads the same trace", "[properties]") {
  holds("threads", [] {
    pb::Synth options;
    options.set_model("resnet50");
    options.set_dp(*rc::gen::inRange<uint32_t>(1, 9));
    options.set_steps(1);
    const tests::TemporaryFolder folder;
    SilentReporter silent;
    const auto gpus = shipped("platforms/catalogue");
    const auto gpu = platforms::PlatformCatalogue(*gpus).gpu("h100-sxm5");
    RC_ASSERT(gpu.has_value());
    std::string first;
    for (const int threads : {1, *rc::gen::inRange(2, 9)}) {
      const auto path = folder.path / fmt::format("{}.rtrace", threads);
      const auto made =
          synth::synthesize_to(path, options, *gpu, {Overwrite::kReplace, threads}, silent);
      if (!made) RC_FAIL(made.error().message());
      traces::ReadOptions read;
      read.threads = threads;
      auto trace = traces::read_rtrace(path, read, silent);
      RC_ASSERT(trace.has_value());
      const auto again = folder.path / "again.rtrace";
      RC_ASSERT(traces::write_rtrace(*trace, again, Overwrite::kReplace).has_value());
      const auto bytes = read_file(path, 1 << 30), copied = read_file(again, 1 << 30);
      RC_ASSERT(bytes.has_value() && copied.has_value());
      const std::string both = *bytes + *copied;
      if (first.empty()) first = both;
      RC_ASSERT(first == both);
    }
  });
}

}  // namespace rehearse::patch_properties_test
