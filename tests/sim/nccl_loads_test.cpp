// SPDX-License-Identifier: Apache-2.0
// What links carry under algorithms that are neither ring nor tree, and under settings that spread
// connections.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "base/document.hpp"
#include "sim/nccl/loads.hpp"
#include "tests/sim/testbeds.hpp"

namespace rehearse::nccl_loads_test {
using namespace rehearse;
using namespace rehearse::sim;
using namespace rehearse::sim::testing;

namespace {

pb::Platform written(const std::string& text) {
  const auto folder = shipped("platforms/catalogue");
  REQUIRE(folder);
  pb::Platform platform;
  const auto read =
      read_document(text, "test", platform, platforms::PlatformCatalogue(*folder).resolver());
  INFO((read ? std::string() : read.error().message()));
  REQUIRE(read);
  return platform;
}

struct Carried {
  std::map<std::string, double> bytes;  // by name of link
  std::string algorithm;
  Nanos time = 0;

  // Of all links whose name ends like that: the sum and the largest.
  [[nodiscard]] double sum(const std::string& end) const {
    double out = 0;
    for (const auto& [name, amount] : bytes) out += name.ends_with(end) ? amount : 0;
    return out;
  }
  // Of the links from leaves to spines as one.
  [[nodiscard]] std::vector<double> uplinks() const {
    std::vector<double> out;
    for (const auto& [name, amount] : bytes) {
      if (name.starts_with("leaf") && name.ends_with("-up")) out.push_back(amount);
    }
    return out;
  }
  [[nodiscard]] double up() const {
    const std::vector<double> all = uplinks();
    return std::accumulate(all.begin(), all.end(), 0.0);
  }
  [[nodiscard]] double most(const std::string& part) const {
    double out = 0;
    for (const auto& [name, amount] : bytes) {
      if (name.find(part) != std::string::npos) out = std::max(out, amount);
    }
    return out;
  }
};

Carried carried(const std::string& platform, uint32_t nodes, uint32_t ranks,
                std::vector<RankSetting> settings, const char* collective, Bytes bytes) {
  TestbedOptions options;
  options.nodes = nodes;
  options.ranks = ranks;
  options.settings = std::move(settings);
  const Bed bed = bed_of(written(platform), options);
  Question question;
  question.collective = collective;
  question.bytes = bytes;
  const auto traffic = traffic_of(bed.testbed->context(), *bed.world, question);
  INFO((traffic ? std::string() : traffic.error().message()));
  REQUIRE(traffic);
  Carried out;
  out.algorithm = traffic->algorithm;
  for (const FlowLoad& flow : traffic->flows) {
    for (const LinkWeight& use : flow.links) {
      out.bytes[bed.testbed->links()[use.link].name] += flow.bytes * use.weight;
    }
  }
  const auto alone = time_alone(bed.testbed->context(), *traffic);
  REQUIRE(alone);
  out.time = alone->total();
  return out;
}

constexpr const char* kReduces =
    "like: dgx-h100\nfabric: {kind: rail-optimised, nodes_per_leaf: 2, spines: 4, sharp: true}";

}  // namespace

TEST_CASE("PAT sends every block once per rank, most of them to the next one", "[nccl][loads]") {
  for (const uint32_t nodes : {2U, 4U, 7U, 16U}) {
    INFO(nodes);
    const Bytes total = Bytes{1} << 26;
    const Carried pat =
        carried("like: dgx-h100", nodes, nodes, {{"NCCL_ALGO", "PAT", {}}}, "all_gather", total);
    CHECK(pat.algorithm.starts_with("PAT"));
    const double others = static_cast<double>(total) * (nodes - 1) / nodes;
    CHECK(pat.sum("/tx") == Approx(others * nodes).epsilon(0.01));
    CHECK(pat.sum("/rx") == Approx(others * nodes).epsilon(0.01));
    const Carried back = carried("like: dgx-h100", nodes, nodes, {{"NCCL_ALGO", "PAT", {}}},
                                 "reduce_scatter", total);
    CHECK(back.sum("/tx") == Approx(others * nodes).epsilon(0.01));
  }
  uint32_t blocks = 0;
  for (int d = 0; d < pat_dimensions(13); ++d) blocks += pat_blocks(13, d);
  CHECK(blocks == 12);
  CHECK(pat_blocks(13, 0) == 6);
  CHECK(pat_blocks(13, 3) == 1);
}

TEST_CASE("PAT crosses leaves less than a Bruck exchange would", "[nccl][loads]") {
  const Bytes total = Bytes{1} << 26;
  const Carried pat =
      carried("like: dgx-h100\nfabric: {kind: rail-optimised, nodes_per_leaf: 4, spines: 4}", 16,
              16, {{"NCCL_ALGO", "PAT", {}}}, "all_gather", total);
  // Of 15 blocks a rank sends, those to distances 4 and 8 (3) always leave a leaf of four nodes;
  // distance 2 (4) and 1 (8) do so for two and for one of them.
  const double block = static_cast<double>(total) / 16;
  CHECK(pat.up() == Approx(16 * 3 * block + 8 * 4 * block + 4 * 8 * block).epsilon(0.02));
}

TEST_CASE("reduction in switches takes the data through each port once", "[nccl][loads]") {
  const Bytes total = Bytes{1} << 28;
  for (const char* algorithm : {"CollnetChain", "CollnetDirect"}) {
    INFO(algorithm);
    std::vector<double> up;
    for (const uint32_t nodes : {2U, 4U, 8U}) {
      const Carried net = carried(kReduces, nodes, 0,
                                  {{"NCCL_COLLNET_ENABLE", "1", {}}, {"NCCL_ALGO", algorithm, {}}},
                                  "all_reduce", total);
      CHECK(net.algorithm.starts_with("COLLNET"));
      CHECK(net.sum("/tx") == Approx(static_cast<double>(total) * nodes).epsilon(0.01));
      CHECK(net.sum("/rx") == Approx(static_cast<double>(total) * nodes).epsilon(0.01));
      const std::vector<double> links = net.uplinks();
      up.push_back(links.empty() ? 0 : *std::max_element(links.begin(), links.end()));
      const Carried ring =
          carried(kReduces, nodes, 0, {{"NCCL_ALGO", "Ring", {}}}, "all_reduce", total);
      if (nodes > 2) CHECK(net.sum("/tx") < ring.sum("/tx"));
    }
    // A link between switches carries what they have reduced, however many nodes are below.
    CHECK(up[0] == 0);
    CHECK(up[1] > 0);
    CHECK(up[2] == Approx(up[1]));
  }
}

TEST_CASE("more queue pairs even out what a hashing fabric carries", "[nccl][loads]") {
  const char* hashes =
      "like: oci-h100\nfabric: {kind: leaf-spine, nodes_per_leaf: 1, spines: 8, ecmp: true}";
  const auto with = [&](const char* pairs) {
    return carried(hashes, 4, 0,
                   {{"NCCL_IB_QPS_PER_CONNECTION", pairs, {}}, {"NCCL_ALGO", "Ring", {}}},
                   "all_reduce", Bytes{1} << 30);
  };
  const Carried one = with("1"), eight = with("8");
  CHECK(eight.sum("/tx") == Approx(one.sum("/tx")));
  CHECK(eight.most("-spine") < one.most("-spine"));
  CHECK(eight.time < one.time);
}

TEST_CASE("traffic that asks for it is spread, the rest is hashed", "[nccl][loads]") {
  const char* spreads =
      "like: dgx-h100\nfabric: {kind: leaf-spine, nodes_per_leaf: 1, spines: 8, adaptive: true}";
  const auto with = [&](std::vector<RankSetting> settings) {
    settings.push_back({"NCCL_ALGO", "Ring", {}});
    return carried(spreads, 4, 0, std::move(settings), "all_reduce", Bytes{1} << 30);
  };
  const Carried usual = with({});
  const Carried hashed = with({{"NCCL_IB_ADAPTIVE_ROUTING", "0", {}}});
  CHECK(usual.most("-spine") == 0);
  CHECK(hashed.most("-spine") > 0);
  CHECK(hashed.up() == Approx(usual.up()));
  CHECK(hashed.time >= usual.time);
  // On one rank: only what it sends.
  const Carried some = with({{"NCCL_IB_ADAPTIVE_ROUTING", "0", {0}}});
  CHECK(some.sum("/tx") == Approx(usual.sum("/tx")));
  CHECK(some.most("-spine") <= hashed.most("-spine"));
}

TEST_CASE("ports of one adapter are one device that uses both", "[nccl][loads]") {
  const auto with = [&](const char* merge) {
    return carried("like: oci-h100", 2, 0,
                   {{"NCCL_IB_MERGE_NICS", merge, {}}, {"NCCL_ALGO", "Ring", {}}}, "all_reduce",
                   Bytes{1} << 28);
  };
  const Carried one = with("1");
  CHECK(one.bytes.at("node0/mlx5_0/tx") == Approx(one.bytes.at("node0/mlx5_1/tx")));
  CHECK(with("0").sum("/tx") == Approx(one.sum("/tx")).epsilon(0.01));
}

TEST_CASE("sends pass through host memory where GPUDirect reads are off", "[nccl][loads]") {
  const auto host = [&](const char* read) {
    return carried("like: dgx-a100", 2, 0,
                   {{"NCCL_NET_GDR_READ", read, {}}, {"NCCL_ALGO", "Ring", {}}}, "all_reduce",
                   Bytes{1} << 28);
  };
  CHECK(host("1").most("/host") == 0);
  CHECK(host("0").most("/host") > 0);
  CHECK(host("0").time > host("1").time);
}

TEST_CASE("a large PAT takes the time of its busiest port", "[nccl][loads]") {
  const Carried pat =
      carried("like: dgx-h100", 8, 8, {{"NCCL_ALGO", "PAT", {}}}, "all_gather", Bytes{1} << 28);
  const double port = pat.most("/tx") / (50e9 * .97);
  CHECK(static_cast<double>(pat.time) * 1e-9 >= port);
  CHECK(static_cast<double>(pat.time) * 1e-9 <= 1.5 * port);
}

}  // namespace rehearse::nccl_loads_test
