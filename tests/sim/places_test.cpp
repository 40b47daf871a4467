// SPDX-License-Identifier: Apache-2.0
// Ranks and nodes that patches name, and what becomes of them when a job is taken apart.
#include "sim/scenario/places.hpp"

#include <catch2/catch.hpp>

#include "base/document.hpp"
#include "sim/shrink/job.hpp"

namespace rehearse::places_test {
using namespace rehearse;
using namespace rehearse::sim;

namespace {

pb::Patch parsed(const std::string& yaml) {
  auto patch = parse_patch(yaml, "test");
  if (!patch) FAIL(patch.error().message());
  return std::move(*patch);
}

Scenario load(const std::string& what) {
  SilentReporter silent;
  auto scenario = load_scenario(what, silent);
  if (!scenario) FAIL(scenario.error().message());
  return std::move(*scenario);
}

// Ranks 0, 2, 9 and 12 of node 0 and 2 of three are left.
const Numbering kSome{{{0, 0}, {2, 1}, {9, 2}, {12, 3}}, {{0, 0}, {2, 1}}, 3};

std::string left(const std::string& yaml) {
  const auto patch = renumbered(parsed(yaml), kSome);
  return patch ? write_line(*patch) : "gone";
}

// The patches of four nodes without the nodes given, as they are written down.
std::vector<std::string> shrunk(const std::vector<std::string>& patches, Part::Kind kind,
                                const std::vector<uint32_t>& gone) {
  Scenario scenario = load("fsdp-32");
  for (const std::string& patch : patches) {
    const auto applied = apply(scenario, parsed(patch));
    if (!applied) FAIL(applied.error().message());
  }
  auto job = take_apart(scenario, Kept::kCalls);
  if (!job) FAIL(job.error().message());
  // Ranks of nodes that go need a seat: half of them go first.
  if (kind == Part::Kind::kNode) {
    std::vector<Part> ranks;
    for (uint32_t rank = 8; rank < 32; ++rank) ranks.push_back({Part::Kind::kRank, rank});
    auto fewer = without(*job, ranks);
    REQUIRE(fewer);
    *job = std::move(*fewer);
  }
  std::vector<Part> parts;
  for (const uint32_t id : gone) parts.push_back({kind, id});
  const auto less = without(*job, parts);
  if (!less) return {"refused"};
  std::vector<std::string> out;
  const Rendered rendered = render(*less);
  for (const pb::Patch& patch : rendered.document.patches()) out.push_back(write_line(patch));
  CHECK(assemble(rendered));
  return out;
}

}  // namespace

TEST_CASE("patches tell which ranks and nodes they name", "[sim][places]") {
  CHECK(rank_of(parsed("skip-collective: {rank: 3, nth: 5}")) == 3u);
  CHECK_FALSE(rank_of(parsed("slow-rank: {ranks: 8-15, slowdown: 2}")));
  CHECK_FALSE(rank_of(parsed("slow-host: {slowdown: 2}")));
  CHECK(names_rank(parsed("slow-rank: {ranks: 8-15, slowdown: 2}"), 8));
  CHECK_FALSE(names_rank(parsed("slow-rank: {ranks: 8-15, slowdown: 2}"), 7));
  CHECK_FALSE(names_rank(parsed("stop-rank: {node: 3}"), 3));
  CHECK(names_node(parsed("stop-rank: {node: 3}"), 3));
  CHECK(names_node(parsed("background-traffic: {from-node: 0, to-node: 1, rate: 1Gbps}"), 1));
  CHECK_FALSE(names_node(parsed("stop-rank: {rank: 3}"), 3));
}

TEST_CASE("patches get the numbers of what is left", "[sim][places]") {
  CHECK(left("skip-collective: {rank: 9, nth: 5}") == "skip-collective: {rank: 2, nth: 5}");
  CHECK(left("skip-collective: {rank: 8, nth: 5}") == "gone");
  CHECK(left("slow-host: {slowdown: 2}") == "slow-host: {slowdown: 2}");
  CHECK(left("slow-rank: {ranks: 8-15, slowdown: 2}") ==
        "slow-rank: {ranks: \"2,3\", slowdown: 2}");
  CHECK(left("slow-rank: {ranks: 3-8, slowdown: 2}") == "gone");
  CHECK(left("slow-rank: {rank: 3, ranks: 8-9, slowdown: 2}") ==
        "slow-rank: {ranks: \"2\", slowdown: 2}");
  CHECK(left("stop-rank: {node: 2}") == "stop-rank: {node: 1}");
  CHECK(left("stop-rank: {node: 1}") == "gone");
  CHECK(left("set: {\"platform.nodes[0-2].nics[*].down\": \"true\"}") ==
        "set: {\"platform.nodes[0,1].nics[*].down\": \"true\"}");
  CHECK(left("set: {\"platform.nodes[*].nics[0].down\": \"true\"}") ==
        "set: {\"platform.nodes[*].nics[0].down\": \"true\"}");
  CHECK(left("set: {\"platform.nodes[1].nics[0].down\": \"true\"}") == "gone");
  CHECK(left("set: {launch.env.NCCL_ALGO: Ring}") == "set: {launch.env.NCCL_ALGO: Ring}");
}

TEST_CASE("timed patches of a smaller job are on the ranks they were on", "[sim][shrink]") {
  const std::vector<std::string> slow = {"{slow-rank: {ranks: 8-15, slowdown: 2}, from: 1ms}"};
  std::vector<uint32_t> some, first, all;
  for (uint32_t rank = 0; rank < 16; ++rank) {
    if (rank < 8) first.push_back(rank);
    if (rank < 10) some.push_back(rank);
    all.push_back(rank);
  }
  CHECK(shrunk(slow, Part::Kind::kRank, first) ==
        std::vector<std::string>{"{slow-rank: {ranks: \"0-7\", slowdown: 2}, from: 1ms}"});
  CHECK(shrunk(slow, Part::Kind::kRank, some) ==
        std::vector<std::string>{"{slow-rank: {ranks: \"0-5\", slowdown: 2}, from: 1ms}"});
  CHECK(shrunk(slow, Part::Kind::kRank, all).empty());
}

TEST_CASE("timed assignments of a smaller job are on the nodes they were on", "[sim][shrink]") {
  const auto set = [](const std::string& nodes) {
    return "{set: {\"platform.nodes[" + nodes + "].nics[0].down\": \"true\"}, from: 1ms}";
  };
  using List = std::vector<std::string>;
  // Node 1 goes: what was on it goes too, and does not come to the old node 2.
  CHECK(shrunk({set("1")}, Part::Kind::kNode, {1}).empty());
  CHECK(shrunk({set("3")}, Part::Kind::kNode, {1}) == List{set("2")});
  CHECK(shrunk({set("1-3")}, Part::Kind::kNode, {1}) == List{set("1,2")});
  CHECK(shrunk({set("*")}, Part::Kind::kNode, {1}) == List{set("*")});
  // Nodes are named anew with fewer of them.
  CHECK(shrunk({set("node3")}, Part::Kind::kNode, {1}) == List{set("2")});
  CHECK(shrunk({set("name=node1")}, Part::Kind::kNode, {1}).empty());
  // Traffic between nodes needs both.
  CHECK(shrunk({"background-traffic: {from-node: 0, to-node: 1, rate: 1GB/s}"}, Part::Kind::kNode,
               {1}) == List{"refused"});
}

}  // namespace rehearse::places_test
