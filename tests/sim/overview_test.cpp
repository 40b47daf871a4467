// SPDX-License-Identifier: Apache-2.0
#include "sim/outcome/overview.hpp"

#include <algorithm>
#include <catch2/catch.hpp>

#include "sim/outcome/lane_rows.hpp"

namespace rehearse::sim::overview_test {
namespace {

// Ranks with a host thread and a stream; every tenth operation of the stream is a call.
pb::Timeline timeline_of(uint32_t ranks, int operations) {
  pb::Timeline out;
  out.set_schema("rehearse.timeline/1");
  for (const char* name : {"launch", "gemm", "nccl"}) out.add_names(name);
  for (const char* kind : {"launch", "compute", "communication"}) out.add_kinds(kind);
  for (int c = 0; c < operations / 10; ++c) out.add_calls()->set_sequence(c);
  for (uint32_t r = 0; r < ranks; ++r) {
    pb::RankTimeline& rank = *out.add_ranks();
    rank.set_rank(r);
    for (const char* name : {"thread 1", "stream 7"}) {
      pb::LaneTimeline& lane = *rank.add_lanes();
      lane.set_name(name);
      const bool stream = lane.name().starts_with("stream");
      uint32_t before = 0;
      for (int i = 0; i < operations; ++i) {
        const bool call = stream && i % 10 == 9;
        lane.add_start(i == 0 ? 0 : 1000 + i % 7 * 100);
        lane.add_duration(600 + i % 3 * 100);
        lane.add_name_id(call ? 2 : stream ? 1 : 0);
        if (!call) continue;
        lane.add_call_at(static_cast<uint32_t>(i) - before);
        lane.add_call(static_cast<uint32_t>(i / 10));
        before = static_cast<uint32_t>(i);
      }
    }
  }
  return out;
}

struct Sums {
  uint64_t entries = 0, operations = 0;
  Nanos busy = 0;
};

Sums sums_of(const pb::LaneTimeline& lane) {
  Sums out;
  each_row(lane, [&](const LaneRow& row) {
    ++out.entries;
    out.operations += row.count;
    out.busy += row.busy;
  });
  return out;
}

}  // namespace

TEST_CASE("a timeline that fits is left as it is", "[sim][overview]") {
  const pb::Timeline whole = timeline_of(2, 50);
  const pb::Timeline small = overview(whole, {.entries = 1000, .in_detail = {}});
  REQUIRE(small.ranks_size() == 2);
  CHECK(small.ranks(1).SerializeAsString() == whole.ranks(1).SerializeAsString());
  CHECK(small.calls_size() == whole.calls_size());
}

TEST_CASE("merged entries keep the number of operations and how long they ran", "[sim][overview]") {
  const pb::Timeline whole = timeline_of(64, 500);
  const pb::Timeline small = overview(whole, {.entries = 4000, .in_detail = {3, 40}});
  uint64_t entries = 0;
  REQUIRE(small.ranks_size() == 64);
  for (int r = 0; r < 64; ++r) {
    const bool in_detail = r == 3 || r == 40;
    for (int l = 0; l < 2; ++l) {
      const pb::LaneTimeline &before = whole.ranks(r).lanes(l), &after = small.ranks(r).lanes(l);
      CHECK(after.name() == before.name());
      const Sums kept = sums_of(after), all = sums_of(before);
      entries += kept.entries;
      if (l == 0 && !in_detail) {
        // Host threads of ranks that nobody asked for.
        CHECK(kept.entries == 0);
        CHECK(after.resolution_ns() > 0);
        continue;
      }
      CHECK(kept.operations == all.operations);
      CHECK(kept.busy == all.busy);
      CHECK((after.resolution_ns() == 0) == in_detail);
    }
  }
  CHECK(entries <= 4000);
  CHECK(entries > 1000);
  // Calls that are still to be seen are numbered anew and point at what they are.
  const pb::LaneTimeline& lane = small.ranks(3).lanes(1);
  REQUIRE(lane.call_size() == 50);
  CHECK(small.calls(static_cast<int>(lane.call(7))).sequence() == 7);
}

TEST_CASE("an overview of an overview still knows every operation", "[sim][overview]") {
  const pb::Timeline whole = timeline_of(8, 2000);
  const pb::Timeline once = overview(whole, {.entries = 4000, .in_detail = {}});
  const pb::Timeline twice = overview(once, {.entries = 400, .in_detail = {}});
  const Sums all = sums_of(whole.ranks(5).lanes(1)), kept = sums_of(twice.ranks(5).lanes(1));
  CHECK(kept.operations == all.operations);
  CHECK(kept.busy == all.busy);
  CHECK(kept.entries < sums_of(once.ranks(5).lanes(1)).entries);
}

TEST_CASE("ranks that were not asked for are never finer than those that were", "[sim][overview]") {
  // Half of the ranks, with their host threads, are more than the other half's streams.
  const pb::Timeline small =
      overview(timeline_of(8, 1000), {.entries = 9000, .in_detail = {0, 1, 2, 3}});
  const Nanos asked = small.ranks(0).lanes(1).resolution_ns();
  CHECK(asked > 0);
  CHECK(small.ranks(7).lanes(1).resolution_ns() >= asked);
}

TEST_CASE("columns of unequal length end with the shortest", "[sim][overview]") {
  pb::LaneTimeline lane;
  lane.add_start(5);
  lane.add_start(5);
  lane.add_duration(1);
  lane.add_name_id(9);
  lane.add_call_at(0);
  CHECK(sums_of(lane).entries == 1);
}

TEST_CASE("who is looked at first: culprits and the extremes of waiting", "[sim][overview]") {
  pb::Outcome outcome;
  outcome.set_ranks(1024);
  outcome.add_culprits()->set_rank(700);
  for (uint32_t r : {1u, 900u, 30u}) {
    pb::RankBreakdown& row = *outcome.add_breakdown();
    row.set_rank(r);
    row.set_wait(r == 900 ? 5000 : r);
  }
  const std::vector<uint32_t> ranks = ranks_of_interest(outcome, 6);
  CHECK(ranks.size() == 6);
  for (uint32_t wanted : {0u, 1u, 700u, 900u}) {
    CHECK(std::find(ranks.begin(), ranks.end(), wanted) != ranks.end());
  }
}

}  // namespace rehearse::sim::overview_test
