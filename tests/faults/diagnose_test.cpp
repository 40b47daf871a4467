// SPDX-License-Identifier: Apache-2.0
#include "faults/diagnose/diagnose.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <climits>
#include <string>

#include "faults/diagnose/likeness.hpp"
#include "faults/diagnose/observable.hpp"
#include "tests/faults/small_world.hpp"

namespace rehearse::diagnose_test {
using namespace rehearse;
using namespace rehearse::faults;

namespace {

const FaultCatalogue& catalogue() {
  static const auto loaded = FaultCatalogue::load_shipped();
  REQUIRE(loaded);
  return *loaded;
}

struct Broken {
  sim::Scenario healthy = testing::small_scenario();
  sim::Scenario scenario = testing::small_scenario();
  pb::Outcome evidence, baseline;

  explicit Broken(const std::string& fault) {
    const World world = testing::small_world();
    const auto use = parse_fault(fault, catalogue());
    REQUIRE(use);
    const auto patches = patches_of(*use, scenario.document);
    REQUIRE(patches);
    for (const pb::Patch& patch : *patches) REQUIRE(world.apply(scenario, patch));
    evidence = *world.simulate(scenario);
    baseline = *world.simulate(healthy);
  }

  [[nodiscard]] pb::Diagnosis diagnosis(uint32_t limit = 200, uint32_t two = 0,
                                        uint32_t others = 200) const {
    const auto found = diagnose({.evidence = evidence,
                                 .healthy = healthy,
                                 .configured = &scenario.document.launch(),
                                 .baseline = &baseline,
                                 .max_simulations = limit,
                                 .max_simulations_of_others = others,
                                 .max_simulations_of_two = two},
                                catalogue(), testing::small_world());
    REQUIRE(found);
    return *found;
  }
};

}  // namespace

TEST_CASE("the injected fault and its place come out first", "[faults][diagnose]") {
  for (const char* fault : {"F16:node=1", "F16:node=0", "F37:node=1", "F21:rank=5,nth=3"}) {
    INFO(fault);
    const pb::Diagnosis diagnosis = Broken(fault).diagnosis();
    REQUIRE(diagnosis.causes_size() > 0);
    CHECK(diagnosis.causes(0).use() == fault);
    CHECK(diagnosis.causes(0).score() == 1);
    CHECK(diagnosis.causes(0).simulated());
    CHECK(diagnosis.causes(0).culprits_size() > 0);
    CHECK(diagnosis.causes(0).evidence_size() > 1);
  }
}

TEST_CASE("the strength of a slow GPU is fitted to the step time", "[faults][diagnose]") {
  const pb::Diagnosis diagnosis = Broken("F60:rank=11,factor=3.2").diagnosis();
  REQUIRE(diagnosis.causes_size() > 0);
  const pb::Cause& cause = diagnosis.causes(0);
  CHECK(cause.fault() == "F60");
  CHECK(cause.culprits(0).rank() == 11);
  CHECK(cause.score() > 0.8);
  const auto use = parse_fault(cause.use(), catalogue());
  REQUIRE(use);
  CHECK(std::stod(use->values.at("factor")) == Approx(3.2).epsilon(0.1));
}

TEST_CASE("a slow node is told from a slow GPU", "[faults][diagnose]") {
  const pb::Diagnosis diagnosis = Broken("F62:node=1,speed=0.5").diagnosis();
  REQUIRE(diagnosis.causes_size() > 0);
  CHECK(diagnosis.causes(0).fault() == "F62");
  CHECK(diagnosis.causes(0).culprits(0).node() == 1);
}

TEST_CASE("a setting that the configuration does not have is no cause", "[faults][diagnose]") {
  const Broken broken("F37:node=1");
  const pb::Diagnosis diagnosis = broken.diagnosis();
  for (const pb::Cause& cause : diagnosis.causes()) {
    CHECK(cause.fault() != "F16");
    CHECK(cause.fault() != "F36");
  }
}

TEST_CASE("a healthy outcome has no cause and costs no simulation", "[faults][diagnose]") {
  const sim::Scenario healthy = testing::small_scenario();
  int runs = 0;
  const World world = testing::small_world(&runs);
  const pb::Outcome outcome = *testing::small_world().simulate(healthy);
  const auto diagnosis =
      diagnose({.evidence = outcome, .healthy = healthy, .baseline = &outcome}, catalogue(), world);
  REQUIRE(diagnosis);
  CHECK(diagnosis->symptom().id() == "healthy");
  CHECK(diagnosis->causes_size() == 0);
  CHECK(runs == 0);
}

TEST_CASE("diagnosis keeps to its limit of simulations and says what it left out",
          "[faults][diagnose]") {
  const pb::Diagnosis diagnosis = Broken("F60:rank=11,factor=3.2").diagnosis(3, 0, 0);
  CHECK(diagnosis.simulations() == 3);
  CHECK(Broken("F60:rank=11,factor=3.2").diagnosis(3, 0, 3).simulations() == 6);
  bool left_out = false;
  for (const pb::Cause& cause : diagnosis.causes()) left_out = left_out || !cause.simulated();
  CHECK(left_out);
}

TEST_CASE("a simulator that refuses makes a cause unsimulated, not an error",
          "[faults][diagnose]") {
  const Broken broken("F16:node=1");
  World world = testing::small_world();
  world.simulate = [](const sim::Scenario&) -> Result<pb::Outcome> {
    return fail(Code::kInternal, "no engine");
  };
  const auto diagnosis =
      diagnose({.evidence = broken.evidence, .healthy = broken.healthy}, catalogue(), world);
  REQUIRE(diagnosis);
  REQUIRE(diagnosis->symptom().reasons_size() > 0);
  CHECK(diagnosis->symptom().reasons().rbegin()->find("could not be simulated: no engine") !=
        std::string::npos);
  REQUIRE(diagnosis->causes_size() > 0);
  CHECK_FALSE(diagnosis->causes(0).simulated());
  CHECK(diagnosis->causes(0).against(0).find("no engine") != std::string::npos);
}

TEST_CASE("an interrupted diagnosis is none, whenever it is stopped", "[faults][diagnose]") {
  const Broken broken("F60:rank=11,factor=3.2");
  int runs = 0, last = INT_MAX;
  World world = testing::small_world(&runs);
  world.simulate = [simulate = world.simulate, &runs,
                    &last](const sim::Scenario& scenario) -> Result<pb::Outcome> {
    if (runs >= last) return fail(Code::kInterrupted, "stopped");
    return simulate(scenario);
  };
  const auto diagnosed = [&] {
    runs = 0;
    return diagnose({.evidence = broken.evidence,
                     .healthy = broken.healthy,
                     .configured = &broken.scenario.document.launch(),
                     .baseline = &broken.baseline,
                     .max_simulations_of_two = 100},
                    catalogue(), world);
  };
  REQUIRE(diagnosed());
  const int all = runs;
  CHECK(all > 20);
  for (last = 0; last < all; ++last) {
    INFO(last);
    const auto stopped = diagnosed();
    REQUIRE_FALSE(stopped);
    CHECK(stopped.error().code == Code::kInterrupted);
    CHECK(runs == last);
  }
}

TEST_CASE("likeness is one for the same run and falls with every difference",
          "[faults][diagnose]") {
  const Broken slow("F60:rank=3,factor=2"), other("F60:rank=4,factor=2"), hang("F21"),
      later("F21:nth=9");
  const auto changes = [](const Broken& broken) {
    return changes_of(observable(broken.evidence), observable(broken.baseline));
  };
  CHECK(likeness(changes(slow), changes(slow)).score == Approx(1));
  CHECK(likeness(changes(slow), changes(other)).score < 0.9);
  const Changes none = changes_of(observable(slow.baseline), observable(slow.baseline));
  CHECK(likeness(changes(slow), none).score < likeness(changes(slow), changes(other)).score);
  CHECK(likeness(changes(hang), changes(hang)).score == Approx(1));
  CHECK(likeness(changes(hang), changes(later)).score < 0.98);
}

TEST_CASE("what was injected is not observable", "[faults][diagnose]") {
  pb::Outcome outcome = Broken("F60:rank=3,factor=2").evidence;
  outcome.add_patches("slow-rank");
  outcome.add_command("--fault F60");
  outcome.mutable_symptom()->set_id("D2.2");
  pb::Culprit& culprit = *outcome.add_culprits();
  culprit.set_kind("rank");
  culprit.set_rank(3);
  pb::OutcomeFinding& rule = *outcome.add_findings();
  rule.set_id("learning-rate-not-scaled");
  rule.set_category("D2.5");
  rule.set_first("job: GPUs of ranks 3 are known to compute wrong results");
  outcome.set_verdict(pb::WRONG_SEMANTICS);
  outcome.set_seed(7);
  outcome.mutable_critical_path()->set_length_ns(1);
  outcome.mutable_origin()->set_scenario("ddp-16");
  const pb::Outcome seen = observable(outcome);
  CHECK(seen.patches_size() == 0);
  CHECK(seen.command_size() == 0);
  CHECK_FALSE(seen.has_symptom());
  CHECK(seen.culprits_size() == 0);
  REQUIRE(seen.findings_size() == 1);
  CHECK(seen.findings(0).id() == "wrong-result");
  CHECK(seen.findings(0).category() == "D2.5");
  CHECK(seen.findings(0).first().empty());
  CHECK(seen.seed() == 0);
  CHECK_FALSE(seen.has_critical_path());
  CHECK_FALSE(seen.has_origin());
  CHECK(observable(seen).SerializeAsString() == seen.SerializeAsString());
  CHECK(readable("launch.env.NCCL_ALGO"));
  CHECK_FALSE(readable("launch.ranks[3].computes_wrong"));
  CHECK_FALSE(readable("platform.nodes[0].shm"));
}

TEST_CASE("evidence that no fault of the catalogue explains has an unknown cause",
          "[faults][diagnose]") {
  Broken broken("F60:rank=3,factor=2");
  // Nobody computes longer, all are late, and no link is busier.
  broken.evidence = broken.baseline;
  auto& steps = *broken.evidence.mutable_step_time_ns();
  steps.set_mean(3 * steps.mean());
  for (pb::RankBreakdown& rank : *broken.evidence.mutable_breakdown()) {
    rank.set_idle(rank.idle() + 2 * rank.step());
    rank.set_step(3 * rank.step());
  }
  CHECK(broken.diagnosis().unknown());
}

TEST_CASE("the strength of a fault is found whose default ends the job in another way",
          "[faults][diagnose][engine]") {
  // Twice this batch does not fit any more.
  SilentReporter reporter;
  const World world = simulated_world(reporter);
  const auto healthy = sim::load_scenario("moe-16", reporter);
  REQUIRE(healthy);
  sim::Scenario broken = *healthy;
  const auto use = parse_fault("F50:times=8.5", catalogue());
  REQUIRE(use);
  const auto patches = patches_of(*use, broken.document);
  REQUIRE(patches);
  for (const pb::Patch& patch : *patches) REQUIRE(world.apply(broken, patch));
  const auto evidence = world.simulate(broken), baseline = world.simulate(*healthy);
  REQUIRE(evidence);
  REQUIRE(baseline);
  REQUIRE(evidence->verdict() == pb::COMPLETED);
  const auto found = diagnose({.evidence = *evidence,
                               .healthy = *healthy,
                               .baseline = &*baseline,
                               .max_simulations_of_others = 0,
                               .max_simulations_of_two = 0},
                              catalogue(), world);
  REQUIRE(found);
  const pb::Diagnosis& diagnosis = *found;
  REQUIRE(diagnosis.causes_size() > 0);
  CHECK_FALSE(diagnosis.unknown());
  CHECK(diagnosis.causes(0).fault() == "F50");
  CHECK(diagnosis.causes(0).score() > 0.95);
}

TEST_CASE("several slow GPUs are not explained by one of them", "[faults][diagnose]") {
  Broken broken("F60:rank=3,factor=2");
  const auto slow =
      std::find_if(broken.evidence.breakdown().begin(), broken.evidence.breakdown().end(),
                   [](const pb::RankBreakdown& rank) { return rank.rank() == 3; });
  REQUIRE(slow != broken.evidence.breakdown().end());
  const pb::RankBreakdown like = *slow;
  for (pb::RankBreakdown& rank : *broken.evidence.mutable_breakdown()) {
    if (rank.rank() % 4 != 3) continue;
    const uint32_t number = rank.rank();
    rank = like;
    rank.set_rank(number);
  }
  CHECK(broken.diagnosis().unknown());
}

TEST_CASE("a slow GPU is found among the ranks of which nothing was recorded",
          "[faults][diagnose]") {
  Broken broken("F60:rank=11,factor=3.2");
  auto& rows = *broken.evidence.mutable_breakdown();
  rows.erase(std::remove_if(rows.begin(), rows.end(),
                            [](const pb::RankBreakdown& rank) { return rank.rank() == 11; }),
             rows.end());
  const pb::Diagnosis diagnosis = broken.diagnosis();
  REQUIRE(diagnosis.causes_size() > 0);
  CHECK(diagnosis.causes(0).fault() == "F60");
  CHECK(diagnosis.causes(0).culprits(0).rank() == 11);
}

TEST_CASE("of two ranks without a record the place is not known, of one that was recorded it is",
          "[faults][diagnose]") {
  Broken broken("F60:rank=11,factor=3.2");
  broken.evidence.add_not_recorded(4);
  CHECK(broken.diagnosis().causes(0).culprits(0).rank() == 11);
  broken.evidence.add_not_recorded(11);
  const pb::Diagnosis diagnosis = broken.diagnosis();
  REQUIRE(diagnosis.causes_size() > 0);
  const pb::Cause& cause = diagnosis.causes(0);
  CHECK(cause.fault() == "F60");
  REQUIRE(cause.elsewhere_size() == 1);
  const bool eleven = cause.use().find("rank=11") != std::string::npos;
  CHECK(cause.elsewhere(0).find(eleven ? "rank=4" : "rank=11") != std::string::npos);
  CHECK(cause.culprits().empty());
}

TEST_CASE("in a cycle of waits the rank is missing that most wait for", "[faults][diagnose]") {
  pb::Outcome run;
  const auto wait = [&](uint32_t rank, const char* group, int64_t sequence,
                        std::initializer_list<uint32_t> others) {
    pb::Wait& row = *run.add_waits();
    row.set_rank(rank);
    row.set_communicator(group);
    row.set_sequence(sequence);
    for (const uint32_t other : others) row.add_for_ranks(other);
  };
  wait(4, "dp/0-4:4", 24, {0});
  for (const uint32_t rank : {0u, 1u, 3u}) wait(rank, "tp/0-3", 519, {2});
  wait(2, "mp/0-7", 0, {0, 1, 3, 4, 5, 6, 7});
  const auto wanted = waited_for(run);
  CHECK(wanted.at(2) == Approx(3));
  CHECK(wanted.at(0) < 1.2);
  REQUIRE(stuck_call(run) != nullptr);
  CHECK(stuck_call(run)->communicator() == "tp/0-3");
  run.set_verdict(pb::HANG);
  const Changes changes = changes_of(run, run);
  CHECK(changes.at(Aspect::kMissing).at("rank 2").value == Approx(1));
}

}  // namespace rehearse::diagnose_test
