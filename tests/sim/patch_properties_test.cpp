// SPDX-License-Identifier: Apache-2.0
// What holds for patches of every job, over random ones: whole simulations with the real models.
#include <sstream>

#include "base/document.hpp"
#include "base/install.hpp"
#include "platforms/model/catalogue.hpp"
#include "sim/simulate.hpp"
#include "tests/sim/property.hpp"
#include "tests/sim/random_place.hpp"
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

// Assignments, of which a machine without network cards takes fewer.
using Pairs = std::vector<std::pair<std::string, std::string>>;

std::pair<std::string, std::string> random_assignment(const Job& job, const Scenario& scenario) {
  const uint32_t rank = *tests::in_range<uint32_t>(0, job.ranks);
  Pairs all = {{"launch.ranks[*].env.NCCL_ALGO", "Tree"},
               {"launch.ranks[*].env.NCCL_PROTO", "LL"},
               {fmt::format("launch.ranks[{}].env.NCCL_DEBUG", rank), "INFO"},
               {"launch.ranks[*].env.NCCL_MAX_NCHANNELS", "2"},
               {"platform.nodes[0].gpus[*].speed", "0.5"},
               {"platform.nodes[*].gpus[0].speed", "0.75"},
               {"launch.env.OMP_NUM_THREADS", "4"}};
  if (scenario.document.platform().nodes(0).nics_size() > 0) {
    all.emplace_back("platform.nodes[0].nics[*].bandwidth", "10Gbps");
  }
  return *rc::gen::elementOf(all);
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> out;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) out.push_back(line);
  if (out.empty()) out.emplace_back();
  return out;
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
    Scenario once = tests::scenario_anywhere(job);
    const auto [path, value] = random_assignment(job, once);
    patched(once, fmt::format("set: {{\"{}\": \"{}\"}}", path, value));
    Scenario twice = once;
    patched(twice, fmt::format("set: {{\"{}\": \"{}\"}}", path, value));
    RC_ASSERT(once.document.SerializeAsString() == twice.document.SerializeAsString());
    RC_ASSERT(run_of(outcome_of(once)) == run_of(outcome_of(twice)));
  });
}

TEST_CASE("an assignment and its inverse leave the scenario as it was", "[properties]") {
  holds("inverse", [](const Job& job) {
    const Scenario before = tests::scenario_anywhere(job);
    const auto [path, value] = random_assignment(job, before);
    const auto old = get_path(before.document, path);
    Scenario after = before;
    patched(after, fmt::format("set: {{\"{}\": \"{}\"}}", path, value));
    // A path that selects several gives a line each: cards of a node can differ, its GPUs do not.
    const std::vector<std::string> lines = lines_of(old ? *old : "");
    const size_t all = path.find("nics[*]");
    for (size_t i = 0; i < (all == path.npos ? 1 : lines.size()); ++i) {
      std::string one = path;
      if (all != path.npos) one.replace(all, 7, fmt::format("nics[{}]", i));
      const auto set = set_path(after.document, one, lines[i]);
      if (!set) RC_FAIL(set.error().message());
    }
    const auto restored = get_path(after.document, path);
    RC_ASSERT(restored.has_value() == old.has_value() || lines[0].empty());
    if (old && restored) RC_ASSERT(*restored == *old);
    RC_ASSERT(run_of(outcome_of(after)) == run_of(outcome_of(before)));
  });
}

TEST_CASE("what is undone never was", "[properties]") {
  holds("undo", [](const Job& job) {
    const Scenario before = tests::scenario_anywhere(job);
    const uint32_t rank = *tests::in_range<uint32_t>(0, job.ranks);
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
    const Scenario before = tests::scenario_anywhere(job);
    Scenario after = before;
    patched(after, *rc::gen::element<std::string>(
                       "grow-data-parallel: 1", "steps: 1", "slow-rank: {rank: 0, slowdown: 1}",
                       "slow-host: {slowdown: 1}", "scale-collectives: 1"));
    RC_ASSERT(run_of(outcome_of(after)) == run_of(outcome_of(before)));
  });
}

// Of one communicator's calls none share a link. What NCCL takes for slower cards can be the better choice: then it shows
// in what the communicator used.
TEST_CASE("slower cards end a job no earlier unless NCCL chooses otherwise", "[properties]") {
  holds("monotonicity of a whole run", [](Job job) {
    for (tests::Line& line : job.lines) {
      if (line.kind >= tests::Line::kPart) line.kind = tests::Line::kAllReduce;
    }
    const Scenario before = tests::scenario_anywhere(job);
    RC_PRE(before.document.platform().nodes(0).nics_size() > 0);
    Scenario after = before;
    patched(after, "set: {\"platform.nodes[*].nics[*].bandwidth\": 5Gbps}");
    const pb::Outcome fast = outcome_of(before), slow = outcome_of(after);
    const auto used = [](const pb::Outcome& outcome) {
      std::string out;
      for (const pb::CommunicatorUse& use : outcome.communicators()) {
        out += use.transport() + " " + use.algorithms() + "\n";
      }
      return out;
    };
    const bool otherwise = used(fast) != used(slow);
    RC_CLASSIFY(otherwise, "NCCL chooses otherwise");
    RC_CLASSIFY(slow.end_ns() > fast.end_ns(), "later");
    RC_LOG(fmt::format("{} {}\n{}{}", fast.end_ns(), slow.end_ns(), used(fast), used(slow)));
    RC_ASSERT(slow.end_ns() >= fast.end_ns() || otherwise);
  });
}

TEST_CASE("a run hangs if and only if somebody is to blame for it", "[properties]") {
  holds("hang", [](const Job& job) {
    Scenario scenario = tests::scenario_anywhere(job);
    // Watchdogs turn a hang into an abort; without them it stays one.
    const bool skips = job.collectives() > 0 && *rc::gen::arbitrary<bool>();
    if (skips) {
      patched(scenario, fmt::format("skip-collective: {{rank: {}, nth: {}}}",
                                    *tests::in_range<uint32_t>(0, job.ranks),
                                    *tests::in_range<uint32_t>(0, job.collectives())));
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
    options.set_dp(*tests::in_range<uint32_t>(1, 9));
    options.set_steps(1);
    const tests::TemporaryFolder folder;
    SilentReporter silent;
    const auto gpus = shipped("platforms/catalogue");
    const auto gpu = platforms::PlatformCatalogue(*gpus).gpu("h100-sxm5");
    RC_ASSERT(gpu.has_value());
    std::string first;
    for (const int threads : {1, *tests::in_range(2, 9)}) {
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
