// SPDX-License-Identifier: Apache-2.0
#include "traces/program/program.hpp"

#include <catch2/catch.hpp>

namespace rehearse::program_test {
using namespace rehearse;
using namespace rehearse::traces;

namespace {

enum LaneIndex : LaneId { kHostLane, kStreamA, kStreamB, kHelper };

RankTrace rank_with_lanes() {
  RankTrace rank;
  rank.lanes = {{LaneKind::kHostThread, 1, 0},
                {LaneKind::kStream, 7, 0},
                {LaneKind::kStream, 20, 0},
                {LaneKind::kHostThread, 2, 0}};
  return rank;
}

RankProgram build(RankTrace& rank, Findings& findings) {
  rank.ops.sort();
  auto program = build_rank_program(rank, static_cast<uint32_t>(rank.steps.size()), findings);
  REQUIRE(program);
  return std::move(*program);
}

// Predecessors of the nth operation of a lane.
std::vector<OpId> before(const RankProgram& program, LaneId lane, OpId nth) {
  const auto span = program.predecessors(program.lane_begin[lane] + nth);
  return {span.begin(), span.end()};
}

}  // namespace

TEST_CASE("a kernel follows its launch and keeps the time between as gap", "[traces][program]") {
  RankTrace rank = rank_with_lanes();
  rank.ops.add(OpKind::kLaunch, kHostLane, 0, 0, 5000, 1);
  rank.ops.add(OpKind::kKernel, kStreamA, 0, 7000, 10'000, 1);
  Findings findings;
  const RankProgram program = build(rank, findings);
  const OpId kernel = program.lane_begin[kStreamA];
  CHECK(before(program, kStreamA, 0) == std::vector<OpId>{program.lane_begin[kHostLane]});
  CHECK(program.gap[kernel] == 2000);
  CHECK(program.duration[kernel] == 10'000);
  CHECK(findings.rows().empty());
}

TEST_CASE("an event makes one stream wait for the other", "[traces][program]") {
  RankTrace rank = rank_with_lanes();
  rank.ops.add(OpKind::kLaunch, kHostLane, 0, 0, 1000, 1);
  rank.ops.add(OpKind::kKernel, kStreamA, 0, 1000, 50'000, 1);
  rank.ops.add_sync(kHostLane, 0, 1000, 100, 0, {SyncKind::kRecord, kStreamA, 42});
  rank.ops.add_sync(kHostLane, 0, 1100, 100, 0, {SyncKind::kWaitEvent, kStreamB, 42});
  rank.ops.add(OpKind::kLaunch, kHostLane, 0, 1200, 1000, 2);
  rank.ops.add(OpKind::kKernel, kStreamB, 0, 51'000, 1000, 2);
  Findings findings;
  const RankProgram program = build(rank, findings);
  const auto predecessors = before(program, kStreamB, 0);
  CHECK(std::count(predecessors.begin(), predecessors.end(), program.lane_begin[kStreamA]) == 1);
  CHECK(program.gap[program.lane_begin[kStreamB]] == 0);
}

TEST_CASE("a wait on an event nobody recorded is a finding, not an edge", "[traces][program]") {
  RankTrace rank = rank_with_lanes();
  rank.ops.add_sync(kHostLane, 0, 0, 100, 0, {SyncKind::kWaitEvent, kStreamB, 42});
  Findings findings;
  const RankProgram program = build(rank, findings);
  CHECK(program.edges.empty());
  CHECK(findings.count("wait-without-event") == 1);
}

TEST_CASE("a host call that waited keeps only what it did after the wait", "[traces][program]") {
  RankTrace rank = rank_with_lanes();
  rank.ops.add(OpKind::kLaunch, kHostLane, 0, 0, 1000, 1);
  rank.ops.add(OpKind::kKernel, kStreamA, 0, 1000, 50'000, 1);
  rank.ops.add_sync(kHostLane, 0, 2000, 49'500, 0, {SyncKind::kDevice, -1, 0});
  Findings findings;
  const RankProgram program = build(rank, findings);
  const OpId sync = program.lane_begin[kHostLane] + 1;
  CHECK(program.gap[sync] == 1000);      // host work before the call
  CHECK(program.duration[sync] == 500);  // 51.5 us end, kernel ended at 51 us
}

TEST_CASE("a thread that wakes after another ended was handed over to", "[traces][program]") {
  RankTrace rank = rank_with_lanes();
  rank.ops.add(OpKind::kLaunch, kHostLane, 0, 0, 1000, 1);
  rank.ops.add(OpKind::kLaunch, kHelper, 0, 1500, 1000, 2);
  rank.ops.add(OpKind::kLaunch, kHostLane, 0, 3000, 1000, 3);
  Findings findings;
  const RankProgram program = build(rank, findings);
  CHECK(program.inferred_edges == 2);
  CHECK(program.gap[program.lane_begin[kHelper]] == 500);
  CHECK(program.gap[program.lane_begin[kHostLane] + 1] == 500);
}

TEST_CASE("framework operators are in the gaps, not in the program", "[traces][program]") {
  RankTrace rank = rank_with_lanes();
  rank.ops.add(OpKind::kHost, kHostLane, 0, 0, 10'000);
  rank.ops.add(OpKind::kAnnotation, kHostLane, 0, 0, 20'000);
  rank.ops.add(OpKind::kLaunch, kHostLane, 0, 8000, 1000, 1);
  Findings findings;
  const RankProgram program = build(rank, findings);
  CHECK(program.size() == 1);
  CHECK(program.gap[0] == 8000);
}

TEST_CASE("stream work belongs to the step that launched it", "[traces][program]") {
  RankTrace rank = rank_with_lanes();
  rank.steps = {{0, 0, 10'000}, {1, 10'000, 20'000}};
  rank.ops.add(OpKind::kLaunch, kHostLane, 0, 9000, 500, 1);
  rank.ops.add(OpKind::kKernel, kStreamA, 0, 12'000, 1000, 1);
  rank.ops.add(OpKind::kLaunch, kHostLane, 0, 11'000, 500, 2);
  rank.ops.add(OpKind::kKernel, kStreamA, 0, 13'000, 1000, 2);
  Findings findings;
  const RankProgram program = build(rank, findings);
  const OpId first = program.lane_begin[kStreamA];
  CHECK(program.step_begin[kStreamA * 3 + 0] == first);
  CHECK(program.step_begin[kStreamA * 3 + 1] == first + 1);
  CHECK(program.step_begin[kStreamA * 3 + 2] == first + 2);
}

TEST_CASE("work without a recorded launch is kept and said", "[traces][program]") {
  RankTrace rank = rank_with_lanes();
  rank.ops.add(OpKind::kKernel, kStreamA, 0, 5000, 1000, 77);
  rank.ops.add(OpKind::kKernel, kStreamA, 0, 9000, 1000);
  Findings findings;
  const RankProgram program = build(rank, findings);
  CHECK(program.size() == 2);
  CHECK(program.gap[1] == 3000);
  CHECK(findings.count("work-without-launch") == 2);
}

TEST_CASE("a dependency that the recording tells orders streams and host operations",
          "[traces][program]") {
  RankTrace rank = rank_with_lanes();
  rank.ops.add(OpKind::kKernel, kStreamB, 0, 30'000, 1000);  // recorded out of order
  rank.ops.add(OpKind::kKernel, kStreamA, 0, 0, 20'000);
  rank.ops.add(OpKind::kHost, kHostLane, 0, 21'000, 4000);
  rank.ops.dependencies = {{0, 2}, {2, 1}};
  Findings findings;
  const RankProgram program = build(rank, findings);
  REQUIRE(program.size() == 3);
  const OpId host = program.lane_begin[kHostLane], b = program.lane_begin[kStreamB];
  CHECK(before(program, kHostLane, 0) == std::vector<OpId>{program.lane_begin[kStreamA]});
  CHECK(before(program, kStreamB, 0) == std::vector<OpId>{host});
  CHECK(program.gap[host] == 1000);
  CHECK(program.gap[b] == 5000);
}

TEST_CASE("an event carries what its stream was told to wait for", "[traces][program]") {
  RankTrace rank = rank_with_lanes();
  rank.lanes.push_back({LaneKind::kStream, 24, 0});
  constexpr LaneId kStreamC = 4;
  rank.ops.add(OpKind::kLaunch, kHostLane, 0, 0, 1000, 1);
  rank.ops.add(OpKind::kKernel, kStreamB, 0, 1000, 50'000, 1);
  rank.ops.add_sync(kHostLane, 0, 1000, 100, 0, {SyncKind::kRecord, kStreamB, 1});
  rank.ops.add_sync(kHostLane, 0, 1100, 100, 0, {SyncKind::kWaitEvent, kStreamA, 1});
  rank.ops.add_sync(kHostLane, 0, 1200, 100, 0, {SyncKind::kRecord, kStreamA, 2});
  rank.ops.add_sync(kHostLane, 0, 1300, 100, 0, {SyncKind::kWaitEvent, kStreamC, 2});
  rank.ops.add(OpKind::kLaunch, kHostLane, 0, 1400, 1000, 2);
  rank.ops.add(OpKind::kKernel, kStreamC, 0, 51'000, 1000, 2);
  Findings findings;
  const RankProgram program = build(rank, findings);
  const auto predecessors = before(program, kStreamC, 0);
  CHECK(std::count(predecessors.begin(), predecessors.end(), program.lane_begin[kStreamB]) == 1);
}

TEST_CASE("a graph launch becomes its kernels on all their streams", "[traces][program]") {
  RankTrace rank = rank_with_lanes();
  rank.ops.add(OpKind::kLaunch, kHostLane, 0, 0, 1000, 1);
  rank.ops.add(OpKind::kKernel, kStreamA, 0, 1000, 50'000, 1);
  rank.ops.add_sync(kHostLane, 0, 1000, 100, 0, {SyncKind::kRecord, kStreamA, 9});
  rank.ops.add_sync(kHostLane, 0, 1100, 100, 0, {SyncKind::kWaitEvent, kStreamB, 9});
  rank.ops.add(OpKind::kGraphLaunch, kHostLane, 0, 2000, 1000, 2);
  for (int k = 0; k < 3; ++k) rank.ops.add(OpKind::kKernel, kStreamA, 0, 60'000 + k * 1000, 900, 2);
  for (int k = 0; k < 2; ++k) rank.ops.add(OpKind::kKernel, kStreamB, 0, 60'000 + k * 1000, 900, 2);
  Findings findings;
  const RankProgram program = build(rank, findings);
  const OpId launch = program.lane_begin[kHostLane] + 3;
  REQUIRE(program.kind[launch] == OpKind::kGraphLaunch);
  for (const auto& [lane, first, last] :
       {std::tuple{kStreamA, 1u, 4u}, std::tuple{kStreamB, 0u, 2u}}) {
    for (OpId k = first; k < last; ++k) {
      const auto predecessors = before(program, lane, k);
      CHECK(std::count(predecessors.begin(), predecessors.end(), launch) == 1);
    }
  }
  const auto held = before(program, kStreamB, 0);
  CHECK(std::count(held.begin(), held.end(), program.lane_begin[kStreamA]) == 1);
  CHECK(findings.count("work-without-launch") == 0);
}

TEST_CASE("the NCCL proxy follows the launch of the call it serves and holds nobody",
          "[traces][program]") {
  RankTrace rank = rank_with_lanes();
  rank.lanes.push_back({LaneKind::kProxy, 99, 0});
  constexpr LaneId kProxyLane = 4;
  rank.ops.add(OpKind::kLaunch, kHostLane, 0, 0, 1000, 5);
  rank.ops.add_call(kStreamA, 0, 2000, 80'000, 5, {});
  rank.ops.add(OpKind::kLaunch, kProxyLane, 0, 3000, 70'000, 5);
  rank.ops.add(OpKind::kLaunch, kHostLane, 0, 75'000, 1000, 6);
  Findings findings;
  const RankProgram program = build(rank, findings);
  CHECK(before(program, kProxyLane, 0) == std::vector<OpId>{program.lane_begin[kHostLane]});
  CHECK(before(program, kHostLane, 1).empty());
  CHECK(program.inferred_edges == 0);
}

TEST_CASE("time of a thread is work, blocked or unknown", "[traces][program]") {
  RankTrace rank = rank_with_lanes();
  rank.ops.add(OpKind::kLaunch, kHostLane, 0, 0, 1000, 1);
  rank.ops.add(OpKind::kKernel, kStreamA, 0, 3000, 97'000, 1);
  rank.ops.add(OpKind::kHost, kHostLane, 0, 101'000, 200'000);  // right after the stream ran dry
  rank.ops.add(OpKind::kLaunch, kHostLane, 0, 301'000, 1000, 2);
  rank.ops.add(OpKind::kKernel, kStreamA, 0, 303'000, 1000, 2);
  rank.ops.add(OpKind::kLaunch, kHostLane, 0, 902'000, 1000, 3);  // nobody knows why so late
  Findings findings;
  const RankProgram program = build(rank, findings);
  const OpId second = program.lane_begin[kHostLane] + 1;
  CHECK(before(program, kHostLane, 1) == std::vector<OpId>{program.lane_begin[kStreamA]});
  CHECK(program.gap[second] == 201'000);
  CHECK(program.host.blocked == 99'000);
  CHECK(program.host.work == 201'000);
  CHECK(program.host.unknown == 600'000);
  REQUIRE(program.unknown_gaps.size() == 1);
  CHECK(program.unknown_gaps[0] == std::pair<OpId, Nanos>{second + 1, 600'000});
  CHECK(program.inferred_edges == 1);
  const auto bound = build_rank_program(rank, 0, {.unknown_gaps = UnknownGaps::kNone}, findings);
  REQUIRE(bound);
  CHECK(bound->gap[second + 1] == 0);
}

TEST_CASE("the duration of a collective is wait up to the last start and transfer after it",
          "[traces][program]") {
  Trace trace;
  trace.communicators = {{"both", "", {0, 1}, ""}, {"more", "", {0, 1, 2}, ""}};
  for (RankId r = 0; r < 2; ++r) {
    RankTrace rank = rank_with_lanes();
    rank.rank = r;
    const Nanos late = r == 0 ? 0 : 70'000;
    rank.ops.add_call(kStreamA, 0, late, 100'000 - late, 0, {.communicator = 0, .sequence = 0});
    rank.ops.add_call(kStreamA, 0, 200'000 + late, 50'000, 0,
                      {.communicator = 0, .sequence = 1, .collective = Collective::kBroadcast});
    rank.ops.add_call(kStreamA, 0, 400'000 + late, 50'000, 0, {.communicator = 1, .sequence = 0});
    trace.ranks.push_back(std::move(rank));
  }
  const auto program = build_program(trace);
  REQUIRE(program);
  const auto& first = program->ranks[0].call_split;
  const auto& second = program->ranks[1].call_split;
  REQUIRE(first.size() == 3);
  CHECK(first[0].wait == 70'000);
  CHECK(first[0].transfer == 30'000);
  CHECK(second[0].wait == 0);
  CHECK(second[0].transfer == 30'000);
  CHECK(first[1].transfer == -1);  // a broadcast ends per rank
  CHECK(first[2].transfer == -1);  // rank 2 was not recorded
}

}  // namespace rehearse::program_test
