// SPDX-License-Identifier: Apache-2.0
#include "cli/outcome_text.hpp"

#include <catch2/catch.hpp>

namespace rehearse::outcome_text_test {
using namespace rehearse;
using namespace rehearse::cli;
using Catch::Matchers::Contains;

namespace {

Terminal plain() { return Terminal::of(-1, Colour::kNever); }

pb::Outcome hang_of_16() {
  pb::Outcome outcome;
  outcome.set_scenario("ddp-16");
  outcome.set_verdict(pb::HANG);
  outcome.mutable_symptom()->set_id("D2.1");
  outcome.mutable_baseline_step_time_ns()->set_mean(60'000'000);
  auto* culprit = outcome.add_culprits();
  culprit->set_kind("rank");
  culprit->set_rank(3);
  culprit->set_why("never called all_reduce 5 of world");
  for (uint32_t rank = 0; rank < 16; ++rank) {
    if (rank == 3) continue;
    auto* wait = outcome.add_waits();
    wait->set_rank(rank);
    wait->add_for_ranks(3);
    wait->set_communicator("world");
    wait->set_sequence(5);
    wait->set_operation("all_reduce");
    auto* error = outcome.add_error_text();
    error->set_rank(rank);
    error->set_text("[Rank " + std::to_string(rank) +
                    "] Watchdog caught collective operation timeout");
  }
  return outcome;
}

}  // namespace

TEST_CASE("step times are compared with the baseline", "[cli]") {
  pb::Outcome outcome;
  CHECK(step_text(outcome) == "no whole step");
  outcome.mutable_step_time_ns()->set_mean(412'000'000);
  CHECK(step_text(outcome) == "step time 412 ms");
  outcome.mutable_baseline_step_time_ns()->set_mean(206'000'000);
  CHECK(step_text(outcome) == "step time 206 ms -> 412 ms (+100.0 %)");
  outcome.mutable_step_time_ns()->set_mean(0);
  CHECK(step_text(outcome) == "no whole step (baseline 206 ms)");
}

TEST_CASE("a run that did not complete says how far it came", "[cli]") {
  pb::Outcome outcome = hang_of_16();
  outcome.mutable_step_time_ns()->set_mean(1);
  outcome.mutable_step_time_ns()->add_each(1);
  CHECK(step_text(outcome) == "after 1 whole step");
  for (int i = 0; i < 3; ++i) outcome.mutable_baseline_step_time_ns()->add_each(1);
  CHECK(step_text(outcome) == "after 1 of 3 steps");
}

TEST_CASE("a patch of several lines is shown on one", "[cli]") {
  pb::Outcome outcome;
  outcome.add_patches("skip_collective:\n  rank: 3\n  nth: 5\n");
  CHECK_THAT(outcome_head(outcome, plain()), Contains("skip_collective: rank: 3, nth: 5\n"));
}

TEST_CASE("the first line of an outcome answers the question", "[cli]") {
  const std::string text = outcome_text(hang_of_16(), plain());
  CHECK(text.substr(0, text.find('\n')) == "ddp-16: hang, no whole step (baseline 60.0 ms)");
  CHECK_THAT(text, Contains("rank 3: never called all_reduce 5 of world"));
}

TEST_CASE("ranks that wait for the same or say the same share a line", "[cli]") {
  const std::string text = outcome_text(hang_of_16(), plain());
  CHECK_THAT(text, Contains("  rank 0-2,4-15: Watchdog caught collective operation timeout\n"));
  CHECK_THAT(text, Contains("0-2,4-15  3          all_reduce  world"));
}

TEST_CASE("the breakdown names the rank with the most of each part", "[cli]") {
  pb::Outcome outcome;
  for (uint32_t rank = 0; rank < 2; ++rank) {
    auto* row = outcome.add_breakdown();
    row->set_rank(rank);
    row->set_step(100'000'000);
    row->set_compute(rank == 1 ? 90'000'000 : 50'000'000);
    row->set_wait(rank == 1 ? 10'000'000 : 50'000'000);
  }
  const std::string text = outcome_text(outcome, plain());
  CHECK_THAT(text, Contains("compute             70.0 ms  70.0 %  50.0 ms  90.0 ms        1\n"));
  CHECK_THAT(text, Contains("waiting for others  30.0 ms  30.0 %  10.0 ms  50.0 ms        0\n"));
  CHECK_THAT(text, !Contains("idle"));
}

TEST_CASE("verdicts are written as in documents", "[cli]") {
  CHECK(verdict_name(pb::WRONG_SEMANTICS) == "wrong-semantics");
}

}  // namespace rehearse::outcome_text_test
