// SPDX-License-Identifier: Apache-2.0
#include "faults/diagnose/recorded_waits.hpp"

#include <catch2/catch.hpp>
#include <set>

#include "faults/diagnose/observable.hpp"

namespace rehearse::recorded_waits_test {
using namespace rehearse;
using namespace rehearse::faults;

namespace {

pb::FlightRecorder& dump_of(uint32_t rank, uint32_t ranks, pb::Outcome& run) {
  pb::FlightRecorder& recorder = *run.add_flight_records();
  recorder.set_rank(rank);
  pb::FlightGroup& group = *recorder.add_groups();
  group.set_name("world");
  for (uint32_t member = 0; member < ranks; ++member) group.add_ranks(member);
  group.set_last_enqueued(-1);
  group.set_last_started(-1);
  group.set_last_completed(-1);
  return recorder;
}

pb::FlightEntry& call(pb::FlightRecorder& recorder, int64_t sequence, const char* state) {
  pb::FlightEntry& entry = *recorder.add_entries();
  entry.set_group_name("world");
  entry.set_collective("all_reduce");
  entry.set_profiling_name("nccl:all_reduce");
  entry.set_collective_seq(sequence);
  entry.set_state(state);
  return entry;
}

std::set<uint32_t> wanted(const pb::Wait& wait) {
  return {wait.for_ranks().begin(), wait.for_ranks().end()};
}

pb::Outcome hang(uint32_t ranks) {
  pb::Outcome run;
  run.set_verdict(pb::HANG);
  run.set_ranks(ranks);
  return run;
}

}  // namespace

TEST_CASE("a rank waits for members whose dump does not show that they run the call",
          "[faults][diagnose]") {
  pb::Outcome run = hang(4);
  call(dump_of(0, 4, run), 7, "started");
  call(dump_of(1, 4, run), 7, "started");
  // In its queue, behind something that does not end.
  call(dump_of(2, 4, run), 7, "scheduled");
  // Rank 3 left no dump. What the simulator knows is not asked.
  pb::Wait& known = *run.add_waits();
  known.set_rank(0);
  known.add_for_ranks(2);
  const auto waits = recorded_waits(run);
  REQUIRE(waits.size() == 2);
  CHECK(waits[0].rank() == 0);
  CHECK(waits[0].sequence() == 7);
  CHECK(wanted(waits[0]) == std::set<uint32_t>{2, 3});
}

TEST_CASE("dumps that do not tell what runs are compared by what is in the queues",
          "[faults][diagnose]") {
  pb::Outcome run = hang(3);
  call(dump_of(0, 3, run), 7, "scheduled");
  call(dump_of(1, 3, run), 7, "scheduled");
  call(dump_of(2, 3, run), 6, "completed").set_retired(true);
  const auto waits = recorded_waits(run);
  REQUIRE(waits.size() == 2);
  CHECK(wanted(waits[0]) == std::set<uint32_t>{2});
}

TEST_CASE("a send waits for the peer that its name tells, unless that receives",
          "[faults][diagnose]") {
  pb::Outcome run = hang(2);
  pb::FlightEntry& send = call(dump_of(0, 2, run), 0, "started");
  send.set_p2p(true);
  send.set_collective("send");
  send.set_profiling_name("nccl:send 0->1");
  pb::FlightRecorder& other = dump_of(1, 2, run);
  REQUIRE(recorded_waits(run).size() == 1);
  CHECK(wanted(recorded_waits(run)[0]) == std::set<uint32_t>{1});
  pb::FlightEntry& receive = call(other, 0, "started");
  receive.set_p2p(true);
  receive.set_collective("recv");
  receive.set_profiling_name("nccl:recv 1<-0");
  REQUIRE(recorded_waits(run).size() == 2);
  CHECK(recorded_waits(run)[0].for_ranks().empty());
}

TEST_CASE("without dumps those are waited for that nobody sees in a call", "[faults][diagnose]") {
  pb::Outcome run = hang(4);
  for (const uint32_t rank : {0u, 1u, 3u}) {
    pb::Wait& wait = *run.add_waits();
    wait.set_rank(rank);
    wait.set_communicator("world");
    wait.set_sequence(rank == 3 ? 5 : 4);
  }
  CHECK(wanted(recorded_waits(run)[0]) == std::set<uint32_t>{2});
  pb::CommunicatorUse& use = *run.add_communicators();
  use.set_id("world");
  use.set_ranks(4);
  // In a group of all ranks who is in another call is not in this one.
  CHECK(wanted(recorded_waits(run)[0]) == std::set<uint32_t>{2, 3});
}

TEST_CASE("of a rank that was not recorded only what it printed is seen", "[faults][diagnose]") {
  pb::Outcome run = hang(3);
  for (const uint32_t rank : {0u, 1u, 2u}) {
    call(dump_of(rank, 3, run), 7, "started");
    run.add_breakdown()->set_rank(rank);
    run.add_error_text()->set_rank(rank);
    run.add_timers()->set_rank(rank);
    run.mutable_memory()->add_ranks()->set_rank(rank);
    run.mutable_bring_up()->add_ranks()->set_rank(rank);
  }
  run.mutable_first_failure()->set_rank(1);
  pb::OutcomeFinding& finding = *run.add_findings();
  finding.set_id("uneven-steps");
  finding.set_first("rank 1 has 2 of 4 steps");
  run.add_not_recorded(1);
  const pb::Outcome seen = observable(run);
  const auto none = [](const auto& rows) {
    return std::none_of(rows.begin(), rows.end(), [](const auto& row) { return row.rank() == 1; });
  };
  CHECK(none(seen.flight_records()));
  CHECK(none(seen.breakdown()));
  CHECK(none(seen.memory().ranks()));
  CHECK(none(seen.waits()));
  CHECK(seen.findings().empty());
  // Launchers bring the output of every process, and say which ended first.
  CHECK(seen.error_text_size() == 3);
  CHECK(seen.timers_size() == 3);
  CHECK(seen.bring_up().ranks_size() == 3);
  CHECK(seen.first_failure().rank() == 1);
  run.add_not_heard(1);
  const pb::Outcome unheard = observable(run);
  CHECK(none(unheard.error_text()));
  CHECK(none(unheard.timers()));
  CHECK(none(unheard.bring_up().ranks()));
  CHECK(unheard.first_failure().rank() == 0);
  // The others wait, as far as anybody can tell, for it.
  REQUIRE(seen.waits_size() == 2);
  CHECK(wanted(seen.waits(0)) == std::set<uint32_t>{1});
}

TEST_CASE("nobody waits for a rank without a dump whose watchdog gave up the same call",
          "[faults][diagnose]") {
  pb::Outcome run = hang(4);
  call(dump_of(0, 4, run), 7, "started").add_inputs()->add_sizes(64);
  call(dump_of(1, 4, run), 7, "started").add_inputs()->add_sizes(64);
  // Of 2 and 3 there are no dumps, but the job's log has what they printed.
  pb::TimerEvent& timer = *run.add_timers();
  timer.set_rank(3);
  timer.set_timer("watchdog");
  timer.set_text(
      "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE, "
      "NumelIn=64, NumelOut=64, Timeout(ms)=600000) ran for 600000 milliseconds before timing "
      "out.");
  const auto waits = recorded_waits(run);
  REQUIRE(waits.size() == 2);
  CHECK(wanted(waits[0]) == std::set<uint32_t>{2});
  // The watchdog counts elements, a dump has the dimensions.
  for (pb::FlightRecorder& recorder : *run.mutable_flight_records()) {
    pb::FlightTensor& input = *recorder.mutable_entries(0)->mutable_inputs(0);
    input.clear_sizes();
    for (const int64_t size : {4, 16}) input.add_sizes(size);
  }
  CHECK(recorded_waits(run)[0].elements_in() == 64);
  CHECK(wanted(recorded_waits(run)[0]) == std::set<uint32_t>{2});
  // Another call of the same number, of another group: it was not in this one.
  timer.set_text(
      "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE, "
      "NumelIn=8, NumelOut=8, Timeout(ms)=600000) ran for 600000 milliseconds before timing out.");
  CHECK(wanted(recorded_waits(run)[0]) == std::set<uint32_t>{2, 3});
}

}  // namespace rehearse::recorded_waits_test
