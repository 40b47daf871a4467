// SPDX-License-Identifier: Apache-2.0
#include "sim/nccl/explain.hpp"

#include "sim/fabric/fabric.hpp"
#include "tests/sim/testbeds.hpp"

namespace rehearse::explain_test {
using namespace rehearse;
using namespace rehearse::sim;
using namespace rehearse::sim::testing;

namespace {

const ExplainedVariant& variant(const Explanation& e, Algorithm algorithm, Protocol protocol) {
  for (const ExplainedVariant& v : e.variants) {
    if (v.algorithm == algorithm && v.protocol == protocol) return v;
  }
  FAIL("no such variant");
  return e.variants.front();
}

Question of(Bytes bytes, const char* collective = "all_reduce") {
  Question question;
  question.bytes = bytes;
  question.collective = collective;
  return question;
}

}  // namespace

TEST_CASE("the chosen variant has the smallest time that NCCL computes", "[sim][explain]") {
  for (const char* id : {"dgx-h100", "dgx-a100", "rtx4090-8"}) {
    for (const uint32_t nodes : {1U, 2U}) {
      const Bed bed = bed_of(id, nodes);
      for (const Bytes bytes : {Bytes{8}, Bytes{1} << 20, Bytes{1} << 30}) {
        const Explanation e = bed.explained(of(bytes));
        const auto chosen = std::find_if(e.variants.begin(), e.variants.end(),
                                         [](const auto& v) { return v.chosen; });
        REQUIRE(chosen != e.variants.end());
        for (const ExplainedVariant& v : e.variants) {
          if (v.available) CHECK(v.nccl_time_us >= chosen->nccl_time_us);
        }
        // What it is said to take if chosen is what it takes.
        CHECK(chosen->time == e.time);
        CHECK(e.time > 0);
        CHECK(e.bus_rate == Approx(e.algorithm_rate * 2 * (e.ranks - 1) / e.ranks));
      }
    }
  }
}

TEST_CASE("messages of an all-to-all leave by the rail of their receiver", "[sim][explain]") {
  const Bed bed = bed_of("dgx-h100", 2);
  const Explanation e = bed.explained(of(Bytes{1} << 26, "all_to_all"));
  REQUIRE(e.pairs.size() == 9);
  CHECK(e.pairs[0].transport == "P2P/NVL");
  CHECK(e.pairs[0].peers == std::vector<uint32_t>{1, 2, 3, 4, 5, 6, 7});
  CHECK(e.pairs[1].peers == std::vector<uint32_t>{8});
  CHECK(e.pairs[1].adapter == "mlx5_0");
  CHECK(e.pairs[1].through == -1);
  // PXN: by the GPU beside the adapter of the receiver's number.
  CHECK(e.pairs[3].peers == std::vector<uint32_t>{10});
  CHECK(e.pairs[3].adapter == "mlx5_2");
  CHECK(e.pairs[3].through == 2);
  const Bed without = bed_of("dgx-h100", 2, 0, {{"NCCL_PXN_DISABLE", "1", {}}});
  const Explanation own = without.explained(of(Bytes{1} << 26, "all_to_all"));
  REQUIRE(own.pairs.size() == 2);
  CHECK(own.pairs[1].adapter == "mlx5_0");
  CHECK(bed.explained(of(1 << 20, "sendrecv")).pairs.size() == 1);
  CHECK(bed.explained(of(1 << 20)).pairs.empty());
}

TEST_CASE("neighbours that reach each other differently are told apart", "[sim][explain]") {
  const Bed pairs = bed_of("a40-8", 1);
  const Explanation e = pairs.explained(of(Bytes{1} << 26));
  REQUIRE(e.inside_ways.size() > 1);
  size_t hops = 0;
  for (const auto& [way, neighbours] : e.inside_ways) {
    CHECK_FALSE(way.empty());
    hops += neighbours.size();
  }
  CHECK(hops >= e.ranks);
  CHECK(bed_of("dgx-h100", 1).explained(of(Bytes{1} << 26)).inside_ways.empty());
}

TEST_CASE("paths are set on the platform with all the nodes that ranks need", "[sim][explain]") {
  const pb::Platform platform = catalogue_platform("dgx-h100");
  TestbedOptions options;
  options.ranks = 32;
  options.assigned = {{"fabric.kind", "rail-only"}, {"nodes[3].nics[7].down", "true"}};
  const auto made = Testbed::make(platform, options, "dgx-h100");
  INFO((made ? "" : made.error().message()));
  REQUIRE(made);
  REQUIRE((*made)->platform().nodes_size() == 4);
  CHECK((*made)->platform().fabric().kind() == pb::RAIL_ONLY);
  CHECK((*made)->platform().nodes(3).nics(7).down());
  options.assigned = {{"nodes[4].nics[0].down", "true"}};
  CHECK_FALSE(Testbed::make(platform, options, "dgx-h100"));
}

TEST_CASE("what is off says by which variable or rule", "[sim][explain]") {
  const Explanation tree =
      bed_of("dgx-a100", 2, 0, {{"NCCL_ALGO", "Tree", {}}, {"NCCL_PROTO", "^LL", {}}})
          .explained(of(1 << 20));
  CHECK(variant(tree, Algorithm::kRing, Protocol::kSimple).why_not == "switched off by NCCL_ALGO");
  CHECK(variant(tree, Algorithm::kTree, Protocol::kLl).why_not == "switched off by NCCL_PROTO");
  CHECK(tree.chosen.starts_with("TREE/"));
  const Explanation pcie = bed_of("rtx4090-8", 1).explained(of(1 << 20));
  CHECK_THAT(variant(pcie, Algorithm::kRing, Protocol::kLl128).why_not, Catch::Contains("NVLink"));
  CHECK_THAT(variant(pcie, Algorithm::kNvls, Protocol::kSimple).why_not, Catch::Contains("SHARP"));
}

TEST_CASE("every refusal has words and every available cell has none", "[sim][explain]") {
  for (const char* id : {"dgx-h100", "dgx1-v100", "a40-8"}) {
    const Bed bed = bed_of(id, 2);
    for (const char* collective : {"all_reduce", "all_gather", "broadcast"}) {
      for (const ExplainedVariant& v : bed.explained(of(1 << 22, collective)).variants) {
        CHECK(v.available == v.why_not.empty());
        CHECK(v.available == (v.bandwidth > 0));
      }
    }
  }
}

TEST_CASE("rings visit every rank once and trees have one root", "[sim][explain]") {
  for (const char* algorithm : {"Ring", "Tree"}) {
    const Bed bed = bed_of("dgx-a100", 3, 0, {{"NCCL_ALGO", algorithm, {}}});
    const Explanation e = bed.explained(of(1 << 26));
    REQUIRE_FALSE(e.graph.empty());
    for (const ExplainedChannel& channel : e.graph) {
      std::vector<uint32_t> sorted = channel.ring;
      std::sort(sorted.begin(), sorted.end());
      for (uint32_t r = 0; r < 24; ++r) REQUIRE(sorted[r] == r);
      CHECK(channel.adapters.size() == 3);
      if (e.chosen.starts_with("TREE")) {
        CHECK(std::count(channel.parent.begin(), channel.parent.end(), -1) == 1);
      }
    }
  }
}

TEST_CASE("one rank without InfiniBand is named as the cause of sockets", "[sim][explain]") {
  const Explanation e =
      bed_of("dgx-a100", 2, 0, {{"NCCL_IB_DISABLE", "1", {11}}}).explained(of(1 << 26));
  CHECK(e.between == "NET/Socket");
  CHECK(e.offered == "NET/IB/GDRDMA");
  REQUIRE_FALSE(e.fallbacks.empty());
  CHECK(e.fallbacks.front().ranks == std::vector<uint32_t>{11});
}

TEST_CASE("a call's time alone is what the fabric of a replay gives it", "[sim][explain]") {
  const Bed bed = bed_of("dgx-h100", 2);
  for (const char* collective : {"all_reduce", "alltoall", "sendrecv"}) {
    const auto traffic = traffic_of(bed.testbed->context(), *bed.world, of(1 << 28, collective));
    REQUIRE(traffic);
    const auto alone = time_alone(bed.testbed->context(), *traffic);
    REQUIRE(alone);
    // No faster than any of its links or its channels.
    for (const auto& bound : alone->links) CHECK(alone->transfer >= bound.time - 1);
    CHECK(alone->transfer >= alone->capped - 1);
  }
}

TEST_CASE("a link that is down means the call never ends", "[sim][explain]") {
  pb::Platform platform = catalogue_platform("dgx-a100");
  platform.set_scale(2);
  REQUIRE(platforms::expand(platform, "test"));
  auto& link = *platform.mutable_fabric()->add_links();
  link.set_name("node0/mlx5_0/tx");
  link.set_down(true);
  const Bed bed = bed_of(platform, {});
  const Explanation e = bed.explained(of(1 << 28));
  CHECK(e.never);
  CHECK(e.bus_rate == 0);
}

TEST_CASE("GPUs that Infinity Fabric joins do not go over the network inside a node",
          "[sim][explain]") {
  // Several rings reach more than one link and no more than all of them: of MI300X seven of 64 GB/s, of which copies use
  // 48 (rocm.blogs.amd.com, "Understanding RCCL Bandwidth and xGMI Performance"); of MI250X eight of 50 GB/s.
  struct Limits {
    const char* machine;
    double one, all;
  };
  for (const auto& [machine, one, all] :
       {Limits{"mi300x-8", 64e9, 7 * 48e9}, Limits{"mi250x-8", 50e9, 8 * 50e9}}) {
    const Explanation e = bed_of(machine, 1).explained(of(1 << 28));
    INFO(machine << ": " << e.bound << " " << e.bus_rate);
    for (const ExplainedLink& link : e.links) CHECK(link.kind != platforms::LinkKind::kNic);
    CHECK(e.bus_rate > one);
    CHECK(e.bus_rate < all);
  }
}

TEST_CASE("launches of one thread on several GPUs bound a stream of small calls",
          "[sim][explain]") {
  const Bed bed = bed_of("dgx-a100", 1);
  Question small = of(1 << 10);
  const Explanation one = bed.explained(small);
  small.gpus_per_thread = 8;
  const Explanation all = bed.explained(small);
  CHECK(one.bound == "latency");
  CHECK(all.bound == "launches");
  CHECK(all.time == 40000);
  Question large = of(1 << 28);
  large.gpus_per_thread = 8;
  CHECK(bed.explained(large).time == bed.explained(of(1 << 28)).time);
}

TEST_CASE("one rank alone takes no time", "[sim][explain]") {
  const Explanation e = bed_of("dgx-a100", 1, 1).explained(of(1 << 20));
  CHECK(e.time == 0);
  CHECK(e.variants.empty());
}

TEST_CASE("settings are read for all ranks and for some in a scenario's words", "[sim][explain]") {
  const auto all = parse_setting("NCCL_ALGO=Ring;allgather:Ring");
  REQUIRE(all);
  CHECK(all->name == "NCCL_ALGO");
  CHECK(all->value == "Ring;allgather:Ring");
  CHECK(all->ranks.empty());
  const auto some = parse_setting("launch.ranks[0,8-10].env.NCCL_IB_HCA==mlx5_0");
  REQUIRE(some);
  CHECK(some->ranks == std::vector<uint32_t>{0, 8, 9, 10});
  CHECK(some->value == "=mlx5_0");
  CHECK(parse_setting("ranks[*].env.X=1")->ranks.empty());
  for (const char* bad : {"", "=", "NCCL_ALGO", "ranks[3.env.X=1", "ranks[5-2].env.X=1",
                          "ranks[99999999].env.X=1", "ranks[1].X=1", "A B=1", "ranks[].env.X=1"}) {
    INFO(bad);
    CHECK_FALSE(parse_setting(bad));
  }
}

TEST_CASE("a testbed refuses what does not fit and says what to do", "[sim][explain]") {
  TestbedOptions options;
  options.nodes = 1;
  options.ranks = 9;
  const auto crowded = Testbed::make(catalogue_platform("dgx-a100"), options, "t");
  REQUIRE_FALSE(crowded);
  CHECK(crowded.error().code == Code::kBadInput);
  CHECK_FALSE(crowded.error().fix.empty());
  options = {};
  options.ranks = 8;
  options.settings = {{"NCCL_ALGO", "Ring", {8}}};
  CHECK_FALSE(Testbed::make(catalogue_platform("dgx-a100"), options, "t"));
  Question unknown;
  unknown.collective = "all_reduc";
  CHECK_FALSE(call_of(unknown, 8));
}

TEST_CASE("a collective is known by the names that logs and frameworks give it", "[sim][explain]") {
  for (const char* name : {"all_to_all", "alltoall", "AllToAll", "ncclAllToAll"}) {
    INFO(name);
    const auto call = call_of(of(1 << 20, name), 8);
    REQUIRE(call);
    CHECK(call->collective == traces::Collective::kAllToAll);
  }
  CHECK_FALSE(call_of(of(1 << 20, "all_to_most"), 8));
}

TEST_CASE("buffers grow with channels and NCCL_BUFFSIZE and are where the transport has them",
          "[sim][explain]") {
  const auto buffers = [](const char* machine, uint32_t nodes, std::vector<RankSetting> settings) {
    settings.push_back({"NCCL_ALGO", "Ring", {}});
    const Explanation e = bed_of(machine, nodes, 0, std::move(settings)).explained(of(1 << 26));
    return std::pair(e.gpu_buffers, e.host_buffers);
  };
  const auto usual = buffers("dgx-a100", 1, {});
  CHECK(usual.first > 0);
  CHECK(usual.first % (Bytes{10} << 20) == 0);  // 10 MiB for each connection
  CHECK(usual.second == 0);
  CHECK(buffers("dgx-a100", 1, {{"NCCL_BUFFSIZE", "8388608", {}}}).first > usual.first);
  CHECK(buffers("dgx-a100", 1, {{"NCCL_MAX_NCHANNELS", "4", {}}}).first == Bytes{40} << 20);
  const auto shared = buffers("dgx-a100", 1, {{"NCCL_P2P_DISABLE", "1", {}}});
  CHECK(shared.first == 0);
  CHECK(shared.second > 0);
  CHECK(buffers("dgx-a100", 2, {{"NCCL_IB_DISABLE", "1", {}}}).second > 0);
}

}  // namespace rehearse::explain_test
