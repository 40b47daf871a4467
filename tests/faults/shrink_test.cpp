// SPDX-License-Identifier: Apache-2.0
#include "faults/shrink/shrink.hpp"

#include <catch2/catch.hpp>

#include "tests/faults/shrunk_check.hpp"
#include "tests/sim/job16.hpp"

namespace rehearse::shrink_test {
using namespace rehearse;
using namespace rehearse::tests;

TEST_CASE("a skipped collective shrinks to a few calls of a few ranks", "[faults][shrink]") {
  sim::Scenario scenario = job16();
  REQUIRE(change(scenario, "skip-collective: {rank: 11, nth: 9}"));
  SilentReporter silent;
  std::vector<std::string> told;
  faults::ShrinkOptions options;
  options.told = [&](const faults::Reduction& reduction) { told.push_back(reduction.what); };
  const auto shrunk = faults::shrink(scenario, options, silent);
  if (!shrunk) FAIL(shrunk.error().message());
  CHECK(shrunk->after.ranks <= 3);
  CHECK(shrunk->after.most_per_rank <= 5);
  CHECK(shrunk->after.nodes == 1);
  CHECK_FALSE(told.empty());
  check_shrunk(scenario, *shrunk);
  const auto again = faults::shrink(scenario, options, silent);
  REQUIRE(again);
  CHECK(write_document(again->rendered.document) == write_document(shrunk->rendered.document));
  CHECK(again->outcome.SerializeAsString() == shrunk->outcome.SerializeAsString());
}

TEST_CASE("a rank that stops late shrinks to a stop before its first calls", "[faults][shrink]") {
  sim::Scenario scenario = job16();
  const Nanos late = run_job16().end_ns() * 3 / 4;
  REQUIRE(
      change(scenario, "stop-rank: {rank: 5, at: " + std::to_string(late) + "ns, silent: true}"));
  SilentReporter silent;
  const auto shrunk = faults::shrink(scenario, {}, silent);
  if (!shrunk) FAIL(shrunk.error().message());
  CHECK(shrunk->after.ranks <= 3);
  CHECK(shrunk->after.most_per_rank <= 5);
  REQUIRE(shrunk->job.patches.size() == 1);
  CHECK(shrunk->job.patches[0].stop_rank().at() == 0);
  CHECK(shrunk->runs < 100);
}

TEST_CASE("what does not fail, or fails otherwise, is not shrunk", "[faults][shrink]") {
  SilentReporter silent;
  const auto healthy = faults::shrink(job16(), {}, silent);
  REQUIRE_FALSE(healthy);
  CHECK(healthy.error().code == Code::kBadInput);
  sim::Scenario scenario = job16();
  REQUIRE(change(scenario, "skip-collective: {rank: 1, nth: 3}"));
  faults::ShrinkOptions other;
  other.symptom = "A1";
  CHECK_FALSE(faults::shrink(scenario, other, silent));
}

TEST_CASE("causes are the same with other numbers and fewer culprits only", "[faults][shrink]") {
  pb::Outcome whole;
  whole.set_verdict(pb::HANG);
  for (const uint32_t rank : {3u, 7u}) {
    pb::Culprit& culprit = *whole.add_culprits();
    culprit.set_kind("rank");
    culprit.set_rank(rank);
    culprit.set_why("never issues all_reduce 7 on world/0-15; 14 ranks wait for it");
  }
  pb::Outcome smaller = whole;
  smaller.mutable_culprits()->RemoveLast();
  smaller.mutable_culprits(0)->set_rank(1);
  smaller.mutable_culprits(0)->set_why(
      "never issues all_reduce 1 on world/0-1; 1 rank wait for it");
  for (pb::Outcome* outcome : {&whole, &smaller}) {
    pb::Culprit& late = *outcome->add_culprits();
    late.set_kind("node");
    late.set_why(outcome == &whole ? "stopped after 100 ms; all_reduce 9 on world/0-15 waits for it"
                                   : "stopped after 67.8 us; all_reduce 0 on tp/0,1 waits for it");
  }
  const auto same = [](uint32_t number) { return number; };
  const auto mapped = [](uint32_t number) { return number == 1 ? 3u : 99u; };
  const faults::FailureCause cause = faults::cause_of(whole, {same, same});
  CHECK(faults::same_cause(cause, faults::cause_of(smaller, {mapped, same})));
  CHECK_FALSE(faults::same_cause(cause, faults::cause_of(smaller, {same, same})));
  smaller.clear_culprits();
  CHECK_FALSE(faults::same_cause(cause, faults::cause_of(smaller, {mapped, same})));
  smaller = whole;
  smaller.set_verdict(pb::CRASH);
  CHECK_FALSE(faults::same_cause(cause, faults::cause_of(smaller, {same, same})));
}

}  // namespace rehearse::shrink_test
