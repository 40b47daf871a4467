// SPDX-License-Identifier: Apache-2.0
// What one rank recorded against its peers: calls left out, made once more, of another size.
#include "faults/diagnose/deviations.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <vector>

namespace rehearse::deviations_test {
using namespace rehearse;
using namespace rehearse::faults;

namespace {

// Four ranks in one group that recorded all-reduces of these sizes; rank 2 those of its own.
pb::Outcome recorded(const std::vector<int64_t>& sizes, const std::vector<int64_t>& of_rank_2) {
  pb::Outcome out;
  for (uint32_t rank = 0; rank < 4; ++rank) {
    pb::FlightRecorder& recorder = *out.add_flight_records();
    recorder.set_rank(rank);
    pb::FlightGroup& group = *recorder.add_groups();
    group.set_name("world/0-3");
    for (uint32_t member = 0; member < 4; ++member) group.add_ranks(member);
    const std::vector<int64_t>& own = rank == 2 ? of_rank_2 : sizes;
    group.set_last_enqueued(static_cast<int64_t>(own.size()));
    for (size_t i = 0; i < own.size(); ++i) {
      pb::FlightEntry& entry = *recorder.add_entries();
      entry.set_group_name("world/0-3");
      entry.set_collective("all_reduce");
      entry.set_collective_seq(static_cast<int64_t>(i) + 1);
      entry.set_record_id(static_cast<int64_t>(i));
      entry.add_inputs()->add_sizes(own[i]);
    }
  }
  return out;
}

Deviation of_rank(uint32_t rank, const pb::Outcome& run) {
  const auto all = deviations(run);
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const Deviation& row) { return row.rank == rank; });
  REQUIRE(found != all.end());
  return *found;
}

}  // namespace

TEST_CASE("a call that one rank leaves out moves its later ones up", "[faults][deviations]") {
  const pb::Outcome run = recorded({10, 20, 30, 40}, {10, 30, 40});
  const Deviation row = of_rank(2, run);
  CHECK(row.ahead == -1);
  CHECK(row.others == 2);
  CHECK(row.sequence == 2);
  CHECK(row.nth == 1);
  CHECK(row.size == Approx(std::log(1.5)));
  CHECK(of_rank(0, run).others == 0);
  REQUIRE(most_deviating(run));
  CHECK(most_deviating(run)->rank == 2);
}

TEST_CASE("a call more and a call of another size are told apart", "[faults][deviations]") {
  const Deviation more = of_rank(2, recorded({10, 20, 30}, {10, 1, 20, 30}));
  CHECK(more.ahead == 1);
  CHECK(more.others == 2);
  const Deviation resized = of_rank(2, recorded({10, 20, 30}, {10, 5, 30}));
  CHECK(resized.ahead == 0);
  CHECK(resized.others == 1);
}

TEST_CASE("all dimensions of all inputs are the size of a recorded call", "[faults][deviations]") {
  pb::Outcome run = recorded({10, 20, 30}, {10, 20, 30});
  pb::FlightEntry& second = *run.mutable_flight_records(2)->mutable_entries(1);
  second.mutable_inputs(0)->add_sizes(4);
  CHECK(of_rank(2, run).others == 1);
  CHECK(of_rank(2, run).size == Approx(std::log(4)));
  second.mutable_inputs(0)->mutable_sizes()->RemoveLast();
  second.add_inputs()->add_sizes(60);
  CHECK(of_rank(2, run).size == Approx(std::log(4)));
}

TEST_CASE("ranks that record the same do not deviate, and without dumps nobody does",
          "[faults][deviations]") {
  CHECK_FALSE(most_deviating(recorded({10, 20}, {10, 20})));
  CHECK(deviations(pb::Outcome()).empty());
}

TEST_CASE("a rank that does not run what its peers are stuck in stands out",
          "[faults][deviations]") {
  pb::Outcome run = recorded({10, 20}, {10, 20});
  for (pb::FlightRecorder& recorder : *run.mutable_flight_records()) {
    recorder.mutable_entries(0)->set_state("completed");
    recorder.mutable_entries(1)->set_state(recorder.rank() == 2 ? "scheduled" : "started");
  }
  CHECK(of_rank(2, run).running == -1);
  CHECK(of_rank(0, run).running == 0);
  for (pb::FlightRecorder& recorder : *run.mutable_flight_records()) {
    recorder.mutable_entries(1)->set_state(recorder.rank() == 2 ? "started" : "scheduled");
  }
  CHECK(of_rank(2, run).running == 1);
  CHECK(of_rank(1, run).running == 0);
}

TEST_CASE("calls that PyTorch has retired are not what ranks are stuck in",
          "[faults][deviations]") {
  pb::Outcome run = recorded({10, 20}, {10, 20});
  for (pb::FlightRecorder& recorder : *run.mutable_flight_records()) {
    recorder.mutable_entries(0)->set_state("started");
    recorder.mutable_entries(0)->set_retired(true);
    recorder.mutable_entries(1)->set_state(recorder.rank() == 2 ? "scheduled" : "started");
  }
  CHECK(of_rank(2, run).running == -1);
  CHECK(of_rank(0, run).running == 0);
}

}  // namespace rehearse::deviations_test
