// SPDX-License-Identifier: Apache-2.0
#include "faults/diagnose/suspects.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <set>

#include "faults/diagnose/candidates.hpp"
#include "faults/diagnose/observable.hpp"
#include "tests/faults/small_world.hpp"

namespace rehearse::suspects_test {
using namespace rehearse;
using namespace rehearse::faults;

namespace {

// Ranks 0 to 7 dump: a call of all that ended at 40 ms, and one of the first node, begun at 60 ms, that waits for rank
// 3, which is gone. The second node goes on in a group of its own until 90 ms; of it rank 12 has left no dump.
pb::Outcome hang_of_rank_3() {
  pb::Outcome run;
  run.set_verdict(pb::HANG);
  run.set_ranks(16);
  run.set_last_progress_ns(90'000'000);
  for (uint32_t rank = 0; rank < 16; ++rank) {
    if (rank == 3 || rank == 12) continue;
    pb::FlightRecorder& recorder = *run.add_flight_records();
    recorder.set_rank(rank);
    const bool first = rank < 8;
    const auto add_group = [&](const char* name, uint32_t from, uint32_t to) {
      pb::FlightGroup& group = *recorder.add_groups();
      group.set_name(name);
      for (uint32_t member = from; member < to; ++member) group.add_ranks(member);
    };
    add_group("world", 0, 16);
    add_group(first ? "first" : "second", first ? 0 : 8, first ? 8 : 16);
    const auto add_call = [&](const char* group, int64_t begin, int64_t end) {
      pb::FlightEntry& entry = *recorder.add_entries();
      entry.set_group_name(group);
      entry.set_collective("all_reduce");
      entry.set_collective_seq(1);
      entry.set_started_ns(begin);
      entry.set_state(end > 0 ? "completed" : "started");
      if (end > 0) entry.set_completed_ns(end);
    };
    add_call("world", 30'000'000, 40'000'000);
    add_call(first ? "first" : "second", 60'000'000, first ? 0 : 90'000'000);
  }
  pb::TimerEvent& timer = *run.add_timers();
  timer.set_rank(12);
  timer.set_timer("watchdog");
  return run;
}

}  // namespace

TEST_CASE("a rank that left neither dump nor word is seen to be gone", "[faults][diagnose]") {
  const pb::Outcome run = hang_of_rank_3();
  const Changes changes = changes_of(observable(run), pb::Outcome{});
  REQUIRE(changes.count(Aspect::kSilent) == 1);
  REQUIRE(changes.at(Aspect::kSilent).size() == 1);
  CHECK(changes.at(Aspect::kSilent).begin()->first == "rank 3");
}

TEST_CASE("that results are wrong is seen whichever rank has no record", "[faults][diagnose]") {
  pb::Outcome run;
  run.set_ranks(4);
  run.set_verdict(pb::WRONG_SEMANTICS);
  pb::OutcomeFinding& finding = *run.add_findings();
  finding.set_id("computes-wrong");
  finding.set_category("D2.4");
  finding.set_first("rank 1 computes wrong results");
  for (const uint32_t rank : {3u, 1u}) {
    run.add_not_recorded(rank);
    const pb::Outcome seen = observable(run);
    REQUIRE(seen.findings_size() == 1);
    CHECK(seen.findings(0).id() == "wrong-result");
    CHECK(seen.findings(0).first().empty());
  }
}

TEST_CASE("who stopped did so between the last call with it and the first that waits for it",
          "[faults][diagnose]") {
  const pb::Outcome run = observable(hang_of_rank_3());
  const sim::Scenario job = testing::small_scenario();
  const Suspects suspects =
      find_suspects(run, changes_of(run, pb::Outcome{}), job.document, /*pace=*/2);
  REQUIRE(suspects.moment);
  CHECK(*suspects.moment == 100'000'000);
  REQUIRE_FALSE(suspects.ranks.empty());
  CHECK(suspects.ranks.front() == 3);
}

TEST_CASE("ranks that texts name are suspects where the job has them", "[faults][diagnose]") {
  pb::Outcome run;
  run.set_verdict(pb::CRASH);
  run.set_ranks(16);
  pb::ErrorText& error = *run.add_error_text();
  error.set_rank(2);
  error.set_text(
      "rank 9 and rank 16 both on CUDA device 7000; rank 4294967298; rank 99999999999; rank x");
  const sim::Scenario job = testing::small_scenario();
  const Suspects suspects =
      find_suspects(run, changes_of(run, pb::Outcome{}), job.document, /*pace=*/1);
  CHECK(std::count(suspects.ranks.begin(), suspects.ranks.end(), 9u) == 1);
  CHECK(std::all_of(suspects.ranks.begin(), suspects.ranks.end(),
                    [](uint32_t rank) { return rank < 16; }));
}

TEST_CASE("usual values of a parameter that nobody sees are all tried", "[faults][diagnose]") {
  const auto catalogue = FaultCatalogue::load_shipped();
  REQUIRE(catalogue);
  const sim::Scenario job = testing::small_scenario();
  pb::Outcome run;
  run.set_verdict(pb::COMPLETED);
  pb::Symptom symptom;
  symptom.set_id("D2.2");
  const Changes none;
  const auto found = find_candidates({.outcome = run,
                                      .changes = none,
                                      .symptom = symptom,
                                      .healthy = job.document,
                                      .configured = nullptr},
                                     *catalogue);
  REQUIRE(found);
  std::set<std::string> sizes;
  for (const Candidate& candidate : *found) {
    if (candidate.use.fault().id() == "F72") sizes.insert(candidate.use.values.at("mtu"));
  }
  CHECK(sizes == std::set<std::string>{"256", "512", "1024", "2048"});
}

TEST_CASE("of an adapter that logs name the GPUs on its PCIe switch are suspected too",
          "[faults][diagnose]") {
  sim::Scenario job = testing::small_scenario();
  pb::Node& node = *job.document.mutable_platform()->mutable_nodes(1);
  for (pb::Gpu& gpu : *node.mutable_gpus()) gpu.mutable_pcie()->set_parent("plx0");
  node.mutable_gpus(2)->mutable_pcie()->set_parent("plx1");
  node.mutable_nics(0)->mutable_pcie()->set_parent("plx1");
  pb::Outcome run;
  run.set_verdict(pb::COMPLETED);
  run.set_ranks(16);
  run.add_findings()->set_first("no longer: on node 1 adapter 0 is in use");
  const Suspects suspects = find_suspects(run, {}, job.document, 1);
  CHECK(suspects.nics == std::vector<std::pair<uint32_t, uint32_t>>{{1, 0}});
  CHECK(suspects.gpus == std::vector<std::pair<uint32_t, uint32_t>>{{1, 2}});
}

}  // namespace rehearse::suspects_test
