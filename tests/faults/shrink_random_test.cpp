// SPDX-License-Identifier: Apache-2.0
// Hangs, crashes and ranks out of step at random places, each made as small as it gets.
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <set>

#include "base/random.hpp"
#include "tests/faults/shrunk_check.hpp"
#include "tests/sim/job16.hpp"

namespace rehearse::shrink_random_test {
using namespace rehearse;
using namespace rehearse::tests;

namespace {

// The kind of failure by number, its place drawn.
std::string random_patch(size_t kind, Random& random, Nanos end) {
  const uint64_t rank = random.below(16), nth = 2 + random.below(30);
  const Nanos at = end / 4 + static_cast<Nanos>(random.below(static_cast<uint64_t>(end / 2)));
  switch (kind % 7) {
    case 0:
      return fmt::format("skip-collective: {{rank: {}, nth: {}}}", rank, nth);
    case 1:
      return fmt::format("extra-collective: {{rank: {}, nth: {}}}", rank, nth);
    case 2:
      return fmt::format("resize-collective: {{rank: {}, nth: {}, factor: 2}}", rank, nth);
    case 3:
      return fmt::format("end-early: {{rank: {}, steps: 1}}", rank);
    case 4:
      return fmt::format("stop-rank: {{rank: {}, at: {}ns, silent: true}}", rank, at);
    case 5:
      return fmt::format("stop-rank: {{rank: {}, at: {}ns}}", rank, at);
    default:
      return fmt::format("swap-collectives: {{rank: {}, nth: {}}}", rank, random.below(9));
  }
}

}  // namespace

TEST_CASE("20 random failures shrink to scenarios that fail alike and are 1-minimal",
          "[faults][shrink]") {
  const Nanos end = run_job16().end_ns();
  SilentReporter silent;
  size_t done = 0, large = 0;
  std::set<std::string> symptoms;
  for (size_t draw = 0; done < 20; ++draw) {
    REQUIRE(draw < 100);
    Random random(2026, "shrink", draw);
    const std::string patch = random_patch(draw, random, end);
    sim::Scenario scenario = job16();
    if (!change(scenario, patch)) continue;
    const pb::Outcome whole = observe_run(scenario);
    if (whole.verdict() != pb::HANG && whole.verdict() != pb::CRASH) continue;
    INFO(patch << ": " << whole.symptom().id());
    const auto shrunk = faults::shrink(scenario, {}, silent);
    if (!shrunk) FAIL(shrunk.error().message());
    check_shrunk(scenario, *shrunk);
    CHECK(shrunk->after.ranks <= 4);
    large += shrunk->after.ranks > 3 || shrunk->after.most_per_rank > 5 ? 1 : 0;
    symptoms.insert(whole.symptom().id());
    WARN(patch << ": " << whole.symptom().id() << ", " << shrunk->after.ranks << " ranks, at most "
               << shrunk->after.most_per_rank << " operations of one, " << shrunk->runs << " runs");
    ++done;
  }
  CHECK(symptoms.size() >= 2);
  CHECK(large <= 4);
}

}  // namespace rehearse::shrink_random_test
