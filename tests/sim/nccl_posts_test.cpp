// SPDX-License-Identifier: Apache-2.0
// The host's thread that posts messages: who posts how many, and when it holds a collective up.
#include "sim/nccl/posts.hpp"
#include "tests/sim/testbeds.hpp"

namespace rehearse::nccl_posts_test {
using namespace rehearse;
using namespace rehearse::sim;
using namespace rehearse::sim::testing;

namespace {

Bed hopper(const char* id, uint32_t nodes, const std::vector<RankSetting>& settings = {}) {
  TestbedOptions options;
  options.nodes = nodes;
  options.nccl_version = "2.19.3";
  options.settings = settings;
  pb::Platform platform = catalogue_platform(id);
  platform.set_scale(nodes);
  REQUIRE(platforms::expand(platform, id));
  return bed_of(platform, options);
}

constexpr double kMany = 1e12;  // messages of a connection

Nanos all_reduce(const Bed& bed, Bytes bytes) {
  Question question;
  question.bytes = bytes;
  return bed.explained(question).time;
}

}  // namespace

TEST_CASE("nobody posts anything on one node", "[sim][nccl][posts]") {
  const Bed bed = hopper("dgx-h100", 1);
  for (const Algorithm algorithm : {Algorithm::kRing, Algorithm::kTree, Algorithm::kNvlsTree}) {
    CHECK(messages_of_busiest(bed.world->graphs(), algorithm, 16) == 0);
  }
}

TEST_CASE("heads of a tree share the messages of all channels", "[sim][nccl][posts]") {
  const Bed bed = hopper("dgx-h100", 8);
  const Graphs& graphs = bed.world->graphs();
  REQUIRE(graphs.shape.nvls_heads == 8);
  // Of eight nodes one has three neighbours in one tree and one in the other; each edge is a message up and one down.
  CHECK(messages_of_busiest(graphs, Algorithm::kNvlsTree, 16) == Approx((8 * 3 + 8 * 1) * 2 / 8.0));
  CHECK(messages_of_busiest(graphs, Algorithm::kNvlsTree, 32) ==
        Approx(2 * messages_of_busiest(graphs, Algorithm::kNvlsTree, 16)));
}

TEST_CASE("posts cost twice as much with AMD processors and thrice through libfabric",
          "[sim][nccl][posts]") {
  Graphs graphs = hopper("dgx-h100", 8).world->graphs();
  const Choice simple{Algorithm::kNvlsTree, Protocol::kSimple, 0, 16, 512};
  graphs.shape.cpu_vendor = CpuVendor::kIntel;
  const double intel = posting_limit(graphs, simple, {16, 65536, kMany, PostedBy::kVerbs});
  // Eight messages of 0.5 us for 64 KiB.
  CHECK(intel == Approx(65536 / (8 * .5e-6)));
  CHECK(posting_limit(graphs, simple, {16, 65536, kMany, PostedBy::kLibfabric}) ==
        Approx(intel / 3));
  const Choice ll{Algorithm::kNvlsTree, Protocol::kLl, 0, 16, 512};
  CHECK(posting_limit(graphs, ll, {16, 65536, kMany, PostedBy::kLibfabric}) == Approx(intel));
  graphs.shape.cpu_vendor = CpuVendor::kAmd;
  CHECK(posting_limit(graphs, simple, {16, 65536, kMany, PostedBy::kVerbs}) == Approx(intel / 2));
  CHECK(posting_limit(graphs, simple, {16, 2 * 65536, kMany, PostedBy::kVerbs}) == Approx(intel));
}

TEST_CASE("small chunks of a tree with in-switch reduction are bound by the host that posts them",
          "[sim][nccl][posts]") {
  const std::vector<RankSetting> tree = {{"NCCL_ALGO", "NVLSTree", {}}};
  std::vector<RankSetting> whole = tree;
  whole.push_back({"NCCL_NVLSTREE_MAX_CHUNKSIZE", "524288", {}});
  const Bed cut = hopper("aws-p5", 8, tree), slots = hopper("aws-p5", 8, whole);
  const Bytes large = Bytes{4} << 30, small = Bytes{1} << 20;
  CHECK(all_reduce(cut, large) > 2 * all_reduce(slots, large));
  // Each head has 8 KiB of a channel: one message either way.
  CHECK(all_reduce(cut, small) == all_reduce(slots, small));
}

TEST_CASE("the first message of a connection is part of its hop's latency", "[sim][nccl][posts]") {
  const Graphs graphs = hopper("dgx-h100", 8).world->graphs();
  const Choice simple{Algorithm::kNvlsTree, Protocol::kSimple, 0, 16, 512};
  const auto time = [&](double messages) {
    const double limit = posting_limit(graphs, simple, {16, 65536, messages, PostedBy::kVerbs});
    return limit > 0 ? messages * 65536 / limit : 0;
  };
  CHECK(time(1) == 0);
  CHECK(time(2) > 0);
  CHECK(time(3) == Approx(2 * time(2)));
  CHECK(time(101) == Approx(100 * time(2)));
}

TEST_CASE("who sends and receives between nodes", "[sim][nccl][posts]") {
  const Bed bed = hopper("dgx-h100", 4);
  const Graphs& graphs = bed.world->graphs();
  const auto every = [](uint32_t, uint32_t, Direction) { return true; };
  double sends = 0, receives = 0;
  for (const auto& [member, posts] : posts_of(graphs, Algorithm::kRing, 8, every)) {
    sends += posts.sends;
    receives += posts.receives;
  }
  // Eight rings leave and enter each of four nodes once.
  CHECK(sends == 32);
  CHECK(receives == 32);
  sends = 0;
  // Three edges join four nodes, each with a message up and one down.
  for (const auto& [member, posts] : posts_of(graphs, Algorithm::kTree, 8, every)) {
    sends += posts.sends;
  }
  CHECK(sends == 8 * 3 * 2);
  CHECK(posts_of(graphs, Algorithm::kCollnetDirect, 8, every).empty());
  const auto none = [](uint32_t, uint32_t, Direction) { return false; };
  CHECK(posts_of(graphs, Algorithm::kRing, 8, none).empty());
}

TEST_CASE("rings never feel who posts their messages", "[sim][nccl][posts]") {
  const Bed bed = hopper("aws-p5", 8, {{"NCCL_ALGO", "Ring", {}}});
  const double limit =
      posting_limit(bed.world->graphs(), {Algorithm::kRing, Protocol::kSimple, 0, 32, 512},
                    {32, 1 << 20, kMany, PostedBy::kLibfabric});
  Question question;
  question.bytes = Bytes{4} << 30;
  const Explanation e = bed.explained(question);
  CHECK(limit * 32 >
        2 * static_cast<double>(question.bytes) * 2 / (static_cast<double>(e.time) * 1e-9));
}

}  // namespace rehearse::nccl_posts_test
