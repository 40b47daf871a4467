// SPDX-License-Identifier: Apache-2.0
#include "faults/diagnose/recorders.hpp"

#include <catch2/catch.hpp>
#include <set>

#include "faults/diagnose/logs.hpp"

namespace rehearse::recorders_test {
using namespace rehearse;
using namespace rehearse::faults;

namespace {

const FaultCatalogue& catalogue() {
  static const auto loaded = FaultCatalogue::load_shipped();
  REQUIRE(loaded);
  return *loaded;
}

// Dumps of `ranks` ranks in one group, each with calls up to `enqueued`, of which those up to `ended` have ended.
std::vector<pb::FlightRecorder> dumps(uint32_t ranks, int64_t enqueued, int64_t ended) {
  std::vector<pb::FlightRecorder> out(ranks);
  for (uint32_t r = 0; r < ranks; ++r) {
    out[r].set_rank(r);
    pb::FlightGroup& group = *out[r].add_groups();
    group.set_id("0");
    group.set_name("0");
    group.set_description("default_pg");
    for (uint32_t m = 0; m < ranks; ++m) group.add_ranks(m);
    group.set_last_enqueued(enqueued);
    for (int64_t seq = 1; seq <= enqueued; ++seq) {
      pb::FlightEntry& entry = *out[r].add_entries();
      entry.set_group_name("0");
      entry.set_collective_seq(seq);
      entry.set_collective("all_reduce");
      entry.set_state(seq <= ended ? "completed" : "scheduled");
      entry.add_inputs()->add_sizes(1024);
    }
  }
  return out;
}

void drop_last(pb::FlightRecorder& recorder, int64_t left) {
  recorder.mutable_groups(0)->set_last_enqueued(left);
  while (recorder.entries_size() > left) recorder.mutable_entries()->RemoveLast();
}

std::set<uint32_t> ranks_of(const std::vector<Diverging>& rows) {
  std::set<uint32_t> out;
  for (const Diverging& row : rows) out.insert(row.rank);
  return out;
}

}  // namespace

TEST_CASE("a rank that never issued a call that the others wait in is named",
          "[faults][recorders]") {
  auto all = dumps(8, 5, 4);
  drop_last(all[3], 4);
  const auto blamed = compare_recorders(all);
  REQUIRE(ranks_of(blamed) == std::set<uint32_t>{3});
  CHECK(blamed[0].how == Divergence::kNeverEntered);
  const pb::Diagnosis diagnosis = diagnose_recorders(all, catalogue());
  CHECK(diagnosis.symptom().id() == "D2.1");
  REQUIRE(diagnosis.causes_size() > 0);
  CHECK(diagnosis.causes(0).culprits(0).rank() == 3);
}

TEST_CASE("a rank whose GPU stopped before its peers' is named", "[faults][recorders]") {
  auto all = dumps(8, 6, 4);
  for (int i = 2; i < 6; ++i) all[6].mutable_entries(i)->set_state("scheduled");
  const auto blamed = compare_recorders(all);
  REQUIRE(ranks_of(blamed) == std::set<uint32_t>{6});
  CHECK(blamed[0].how == Divergence::kStoppedFirst);
}

TEST_CASE("a rank on which a queued call never ran while it runs elsewhere is named",
          "[faults][recorders]") {
  auto all = dumps(8, 5, 4);
  for (uint32_t r = 0; r < 8; ++r) {
    if (r != 2) all[r].mutable_entries(4)->set_state("started");
  }
  const auto blamed = compare_recorders(all);
  REQUIRE(ranks_of(blamed) == std::set<uint32_t>{2});
  CHECK(blamed[0].how == Divergence::kNeverStarted);
}

TEST_CASE("a rank that alone waits in a call is ahead, and the call is its fault",
          "[faults][recorders]") {
  auto all = dumps(8, 5, 4);
  for (uint32_t r = 1; r < 8; ++r) drop_last(all[r], 4);
  const auto blamed = compare_recorders(all);
  REQUIRE(ranks_of(blamed) == std::set<uint32_t>{0});
  CHECK(diagnose_recorders(all, catalogue()).causes(0).fault() == "F22");
}

TEST_CASE("another size in the same call, and a dump that is missing", "[faults][recorders]") {
  auto all = dumps(4, 2, 1);
  all[2].mutable_entries(1)->mutable_inputs(0)->set_sizes(0, 512);
  CHECK(compare_recorders(all).at(0).how == Divergence::kOtherSize);
  auto three = dumps(4, 2, 1);
  three.pop_back();
  REQUIRE(ranks_of(compare_recorders(three)) == std::set<uint32_t>{3});
  CHECK(compare_recorders(three)[0].how == Divergence::kNoDump);
}

TEST_CASE("a call that was left out or made once more moves all that follow, another size does not",
          "[faults][recorders]") {
  // Calls of rising sizes, the fourth of which never ends; rank 2 has its own from the third on.
  const auto with_sizes = [](const std::vector<int64_t>& own) {
    auto all = dumps(4, 6, 2);
    for (uint32_t r = 0; r < 4; ++r) {
      for (int i = 0; i < 6; ++i) {
        all[r].mutable_entries(i)->mutable_inputs(0)->set_sizes(0, r == 2 ? own[i] : 100 + i);
      }
    }
    return all;
  };
  const auto found = [](const std::vector<pb::FlightRecorder>& all) {
    const auto blamed = compare_recorders(all);
    REQUIRE(ranks_of(blamed) == std::set<uint32_t>{2});
    const pb::Diagnosis diagnosis = diagnose_recorders(all, catalogue());
    REQUIRE(diagnosis.causes_size() > 0);
    return std::pair(blamed[0].how, diagnosis.causes(0).fault());
  };
  CHECK(found(with_sizes({100, 101, 103, 104, 105, 106})) ==
        std::pair<Divergence, std::string>(Divergence::kLeftOut, "F21"));
  CHECK(found(with_sizes({100, 101, 7, 102, 103, 104})) ==
        std::pair<Divergence, std::string>(Divergence::kOneMore, "F22"));
  CHECK(found(with_sizes({100, 101, 7, 103, 104, 105})) ==
        std::pair<Divergence, std::string>(Divergence::kOtherSize, "F23"));
}

TEST_CASE("dumps in which nothing is pending are healthy, and all alike are unknown",
          "[faults][recorders]") {
  CHECK(diagnose_recorders(dumps(4, 3, 3), catalogue()).symptom().id() == "healthy");
  const pb::Diagnosis stuck = diagnose_recorders(dumps(4, 3, 2), catalogue());
  CHECK(stuck.unknown());
  CHECK(stuck.causes_size() == 0);
}

TEST_CASE("a setting that NCCL read on one host names fault and host", "[faults][logs]") {
  pb::NcclLog log;
  for (const char* host : {"node0", "node1"}) {
    pb::NcclProcess& process = *log.add_processes();
    process.set_host(host);
    process.set_network("Socket");
    (*process.mutable_environment())["NCCL_DEBUG"] = "INFO";
  }
  (*log.mutable_processes(1)->mutable_environment())["NCCL_IB_DISABLE"] = "1";
  JobLogs logs;
  logs.nccl.push_back({std::nullopt, log});
  const pb::Diagnosis diagnosis = diagnose_by_rules(logs, catalogue());
  CHECK(diagnosis.symptom().id() == "B3");
  REQUIRE(diagnosis.causes_size() > 0);
  CHECK(diagnosis.causes(0).fault() == "F16");
  CHECK(diagnosis.causes(0).culprits(0).why() == "node1");
}

}  // namespace rehearse::recorders_test
