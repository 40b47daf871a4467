// SPDX-License-Identifier: Apache-2.0
#include "sim/outcome/pictures.hpp"

#include "base/packed.hpp"
#include "sim/outcome/lane_rows.hpp"
#include "sim/worker.hpp"
#include "tests/sim/job16.hpp"

namespace rehearse::tests::pictures_test {
namespace {

pb::Outcome with_pictures(const std::vector<std::string>& changes = {}) {
  sim::Scenario scenario = job16();
  for (const std::string& text : changes) REQUIRE(change(scenario, text));
  SilentReporter silent;
  auto outcome = sim::simulate(scenario, sim::Detail::kPictures, silent);
  if (!outcome) FAIL(outcome.error().message());
  return std::move(*outcome);
}

pb::Pictures pictures_of(const pb::Outcome& outcome) {
  auto pictures = sim::unpacked_pictures(outcome.pictures(), "test");
  if (!pictures) FAIL(pictures.error().message());
  return std::move(*pictures);
}

}  // namespace

TEST_CASE("an outcome carries what a report draws, when asked for", "[sim][pictures]") {
  const pb::Outcome outcome = with_pictures();
  const pb::Pictures pictures = pictures_of(outcome);
  CHECK(pictures.operations() > 1000);
  CHECK(pictures.timeline().ranks_size() == 16);
  REQUIRE(pictures.cluster().nodes_size() == 2);
  CHECK(pictures.cluster().nodes(1).gpus_size() == 8);
  REQUIRE(pictures.cluster().nodes(1).gpus(3).ranks_size() == 1);
  CHECK(pictures.cluster().nodes(1).gpus(3).ranks(0) == 11);
  REQUIRE(pictures.cluster().links_size() > 20);
  for (const pb::LinkPicture& link : pictures.cluster().links()) {
    CHECK(link.over_time().size() == 60);
    CHECK(link.capacity() > 0);
  }
  CHECK(run_job16().pictures().empty());
}

TEST_CASE("the critical path of a timeline covers the run from its end backwards",
          "[sim][pictures]") {
  SilentReporter silent;
  const auto outcome = sim::simulate(job16(), sim::Detail::kTimeline, silent);
  REQUIRE(outcome);
  const auto& path = outcome->timeline().critical_path();
  REQUIRE(path.size() > 10);
  CHECK(path[path.size() - 1].to_ns() == outcome->end_ns());
  for (int i = 1; i < path.size(); ++i) {
    CHECK(path[i].from_ns() >= path[i - 1].to_ns());
    CHECK(path[i].to_ns() > path[i].from_ns());
  }
  Nanos length = 0;
  for (const auto& part : path) length += part.to_ns() - part.from_ns();
  CHECK(length <= outcome->critical_path().length_ns());
  CHECK(length > outcome->critical_path().length_ns() * 9 / 10);
}

TEST_CASE("a timeline of too many operations is merged while it is made", "[sim][pictures]") {
  struct Sums {
    size_t entries = 0, calls = 0, lanes = 0;
    uint64_t operations = 0;
    Nanos busy = 0;
  };
  const auto sums = [](const pb::Timeline& timeline) {
    Sums out;
    out.calls = static_cast<size_t>(timeline.calls_size());
    for (const pb::RankTimeline& rank : timeline.ranks()) {
      for (const pb::LaneTimeline& lane : rank.lanes()) {
        ++out.lanes;
        sim::each_row(lane, [&](const sim::LaneRow& row) {
          ++out.entries;
          out.operations += row.count;
          out.busy += row.busy;
          if (row.call != sim::kNoTimelineCall) CHECK(row.call < out.calls);
        });
      }
    }
    return out;
  };
  SilentReporter silent;
  const auto bytes = sim::in_child(
      [&](Reporter& inner) -> Result<std::string> {
        std::string out;
        auto done = sim::replay_here(job16(), inner, [&](const sim::Evidence& evidence) {
          const size_t operations = evidence.program.operations();
          pb::Timeline timeline;
          sim::fill_timeline(evidence, sim::resolution_of(evidence, operations), timeline);
          pb::Timeline merged;
          sim::fill_timeline(evidence, sim::resolution_of(evidence, operations / 8), merged);
          out = std::to_string(timeline.ByteSizeLong()) + " " + timeline.SerializeAsString() +
                merged.SerializeAsString();
        });
        if (!done) return tl::unexpected(done.error());
        return out;
      },
      silent);
  REQUIRE(bytes);
  const size_t space = bytes->find(' ');
  const size_t length = std::stoul(bytes->substr(0, space));
  pb::Timeline whole, merged;
  REQUIRE(whole.ParseFromString(bytes->substr(space + 1, length)));
  REQUIRE(merged.ParseFromString(bytes->substr(space + 1 + length)));
  const Sums all = sums(whole), few = sums(merged);
  CHECK(all.entries == all.operations);
  CHECK(few.operations == all.operations);
  CHECK(few.busy == all.busy);
  CHECK(few.entries <= all.entries / 8 + few.lanes);
  CHECK(few.entries > all.entries / 100);
  CHECK(few.calls < all.calls);
}

TEST_CASE("calls of a timeline name who came last", "[sim][pictures]") {
  SilentReporter silent;
  const auto outcome = sim::simulate(job16(), sim::Detail::kTimeline, silent);
  REQUIRE(outcome);
  const pb::Timeline& timeline = outcome->timeline();
  size_t members = 0;
  for (const pb::RankTimeline& rank : timeline.ranks()) {
    for (const pb::LaneTimeline& lane : rank.lanes()) {
      REQUIRE(lane.call_size() == lane.call_at_size());
      members += static_cast<size_t>(lane.call_size());
      for (const uint32_t call : lane.call()) {
        REQUIRE(call < static_cast<uint32_t>(timeline.calls_size()));
        CHECK(timeline.calls(static_cast<int>(call)).last_rank() < 16);
      }
    }
  }
  CHECK(members > static_cast<size_t>(timeline.calls_size()));
}

TEST_CASE("a lane that a hang stopped shows what it never left", "[sim][pictures]") {
  const pb::Outcome outcome = with_pictures({"skip-collective: {rank: 5, nth: 3}"});
  REQUIRE(outcome.verdict() == pb::HANG);
  const pb::Pictures pictures = pictures_of(outcome);
  size_t open = 0;
  for (const pb::RankTimeline& rank : pictures.timeline().ranks()) {
    for (const pb::LaneTimeline& lane : rank.lanes()) {
      if (!lane.has_open()) continue;
      ++open;
      REQUIRE(lane.open().has_call());
      CHECK(pictures.timeline().calls(static_cast<int>(lane.open().call())).end_ns() == -1);
    }
  }
  CHECK(open > 0);
  CHECK(pictures.timeline().critical_path().empty());
}

TEST_CASE("memory curves reach the peak of the outcome", "[sim][pictures]") {
  const pb::Outcome outcome = with_pictures();
  const pb::Pictures pictures = pictures_of(outcome);
  if (outcome.memory().ranks().empty()) {
    CHECK(pictures.memory().empty());
    return;
  }
  REQUIRE(pictures.memory_size() > 0);
  const pb::MemoryCurve& curve = pictures.memory(0);
  Bytes most = 0;
  for (const Bytes bytes : curve.bytes()) most = std::max(most, bytes);
  for (const pb::RankMemory& rank : outcome.memory().ranks()) {
    if (rank.rank() == curve.rank()) CHECK(rank.peak() == most);
  }
}

TEST_CASE("packed bytes come back, damaged ones are refused", "[base][packed]") {
  for (const size_t size : {0u, 1u, 2u, 3u, 1000u}) {
    std::string bytes;
    for (size_t i = 0; i < size; ++i) bytes += static_cast<char>(i * 37 % 256);
    const std::string text = pack(bytes);
    CHECK(unpack(text, 1 << 20, "test") == bytes);
  }
  const std::string text = pack(std::string(5000, 'x'));
  CHECK(unpack(text, 4000, "test").error().code == Code::kLimit);
  CHECK(unpack(text.substr(0, text.size() / 8 * 4), 1 << 20, "test").error().code ==
        Code::kBadInput);
  CHECK(unpack("not base64!", 1 << 20, "test").error().code == Code::kBadInput);
  CHECK(unpack("", 1 << 20, "test").error().code == Code::kBadInput);
  CHECK(unpack("AAAA", 1 << 20, "test").error().code == Code::kBadInput);
  CHECK(sim::unpacked_pictures(pack("\xff\xff\xff"), "test").error().code == Code::kBadInput);
}

}  // namespace rehearse::tests::pictures_test
