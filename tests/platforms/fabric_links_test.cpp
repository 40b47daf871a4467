// SPDX-License-Identifier: Apache-2.0
#include <set>

#include "tests/platforms/platforms_for_tests.hpp"

namespace rehearse::platforms::fabric_links_test {
namespace {

// Nodes with two NICs of 25 GB/s on one switch each.
std::string cluster(int nodes, const std::string& fabric) {
  return kTwoSockets + "scale: " + std::to_string(nodes) + " fabric { hop_latency: 130 " + fabric +
         "}";
}

Names between(const Links& links, GpuRef a, GpuRef b, uint64_t flow = 0) {
  std::vector<LinkId> route;
  links.network(a.node, a.gpu, b.node, b.gpu, flow, route);
  return names(links, route);
}

double capacity(const Links& links, std::string_view name) {
  const LinkId id = links.find(name);
  REQUIRE(id != kNoLink);
  return links[id].capacity;
}

}  // namespace

TEST_CASE("one switch is crossed by tx and rx alone", "[platforms][fabric]") {
  const Links links = links_of(expanded(cluster(2, "kind: SINGLE_SWITCH")));
  CHECK(between(links, {0, 0}, {1, 1}) == Names{"node0/mlx5_0/tx", "node1/mlx5_1/rx"});
  CHECK(capacity(links, "node0/mlx5_0/tx") == 25e9);
  CHECK(links[links.find("node0/mlx5_0/tx")].latency == 450 + 130);
  CHECK(links[links.find("node1/mlx5_1/rx")].latency == 450);
}

TEST_CASE("without a fabric nodes are joined by a link that is down", "[platforms][fabric]") {
  const Links links = links_of(expanded(cluster(2, "kind: NO_FABRIC")));
  CHECK(between(links, {0, 0}, {1, 0}) == Names{"node0/mlx5_0/tx", "no-fabric", "node1/mlx5_0/rx"});
  CHECK(links[links.find("no-fabric")].down);
}

TEST_CASE("leaves are joined by bundles of down bandwidth over oversubscription",
          "[platforms][fabric]") {
  const Links links =
      links_of(expanded(cluster(5, "kind: LEAF_SPINE nodes_per_leaf: 2 oversubscription: 4")));
  CHECK(between(links, {0, 0}, {1, 1}) == Names{"node0/mlx5_0/tx", "node1/mlx5_1/rx"});
  CHECK(between(links, {0, 0}, {2, 0}) ==
        Names{"node0/mlx5_0/tx", "leaf0-up", "leaf1-down", "node2/mlx5_0/rx"});
  CHECK(capacity(links, "leaf0-up") == Approx(4 * 25e9 / 4));
  CHECK(capacity(links, "leaf2-down") == Approx(2 * 25e9 / 4));
  CHECK(links[links.find("leaf0-up")].latency == 130);
}

TEST_CASE("flows are hashed onto spines when the fabric does so", "[platforms][fabric]") {
  const Links links =
      links_of(expanded(cluster(4, "kind: LEAF_SPINE nodes_per_leaf: 2 spines: 4 ecmp: true")));
  CHECK(capacity(links, "leaf0-spine3") == Approx(25e9));
  CHECK(capacity(links, "spine3-leaf1") == Approx(25e9));
  std::set<std::string> ways;
  for (uint64_t flow = 0; flow < 64; ++flow) {
    const Names route = between(links, {0, 0}, {2, 0}, flow);
    REQUIRE(route.size() == 4);
    const std::string spine = route[1].substr(route[1].find('-') + 1);
    CHECK(route[2] == spine + "-leaf1");
    CHECK(between(links, {0, 0}, {2, 0}, flow) == route);
    ways.insert(spine);
  }
  CHECK(ways.size() == 4);
}

TEST_CASE("adaptive switches spread the flows that ask for it and hash the rest",
          "[platforms][fabric]") {
  const Links links =
      links_of(expanded(cluster(4, R"(kind: LEAF_SPINE nodes_per_leaf: 2 spines: 4 adaptive: true
      links { name: "leaf0-spine2" down: true } links { name: "spine1-leaf1" bandwidth: 5e9 })")));
  CHECK(between(links, {0, 0}, {2, 0}, kSpreadFlow) ==
        Names{"node0/mlx5_0/tx", "leaf0-up", "leaf1-down", "node2/mlx5_0/rx"});
  const Names one = between(links, {0, 0}, {2, 0}, 1);
  REQUIRE(one.size() == 6);
  CHECK(one[1] == "leaf0-up");
  CHECK(one[2].starts_with("leaf0-spine"));
  CHECK(one[3].ends_with("-leaf1"));
  CHECK(links[links.find(one[2])].latency == 0);
  CHECK(capacity(links, "leaf0-up") == Approx(75e9));
  CHECK(capacity(links, "leaf1-down") == Approx(80e9));
}

TEST_CASE("a rail-optimised fabric has one leaf per rail and group", "[platforms][fabric]") {
  const Links links = links_of(expanded(cluster(4, "kind: RAIL_OPTIMISED nodes_per_leaf: 2")));
  CHECK(between(links, {0, 1}, {1, 1}) == Names{"node0/mlx5_1/tx", "node1/mlx5_1/rx"});
  CHECK(between(links, {0, 0}, {1, 1}) ==
        Names{"node0/mlx5_0/tx", "leaf0-up", "leaf1-down", "node1/mlx5_1/rx"});
  CHECK(between(links, {0, 1}, {3, 1}) ==
        Names{"node0/mlx5_1/tx", "leaf1-up", "leaf3-down", "node3/mlx5_1/rx"});
  CHECK(capacity(links, "leaf3-up") == Approx(2 * 25e9));
}

TEST_CASE("rails without spines reach no other rail and no other group", "[platforms][fabric]") {
  const Links links = links_of(expanded(cluster(4, "kind: RAIL_ONLY nodes_per_leaf: 2")));
  CHECK(between(links, {0, 1}, {1, 1}) == Names{"node0/mlx5_1/tx", "node1/mlx5_1/rx"});
  CHECK(between(links, {0, 0}, {1, 1}) == Names{"node0/mlx5_0/tx", "no-spine", "node1/mlx5_1/rx"});
  CHECK(between(links, {0, 1}, {3, 1}) == Names{"node0/mlx5_1/tx", "no-spine", "node3/mlx5_1/rx"});
  CHECK(links[links.find("no-spine")].down);
}

TEST_CASE("pods of a fat tree are joined by a core layer", "[platforms][fabric]") {
  const Links links =
      links_of(expanded(cluster(8, "kind: FAT_TREE nodes_per_leaf: 2 leaves_per_group: 2")));
  CHECK(between(links, {0, 0}, {2, 0}) ==
        Names{"node0/mlx5_0/tx", "leaf0-up", "leaf1-down", "node2/mlx5_0/rx"});
  CHECK(between(links, {0, 0}, {7, 0}) == Names{"node0/mlx5_0/tx", "leaf0-up", "pod0-up",
                                                "pod1-down", "leaf3-down", "node7/mlx5_0/rx"});
  CHECK(capacity(links, "pod0-up") == Approx(8 * 25e9));
}

TEST_CASE("groups of a dragonfly are joined pairwise", "[platforms][fabric]") {
  const Links links = links_of(expanded(
      cluster(6, "kind: DRAGONFLY nodes_per_leaf: 1 leaves_per_group: 2 global_bandwidth: 40e9")));
  CHECK(between(links, {0, 0}, {1, 0}) ==
        Names{"node0/mlx5_0/tx", "leaf0-up", "leaf1-down", "node1/mlx5_0/rx"});
  for (uint32_t a = 0; a < 3; ++a) {
    for (uint32_t b = 0; b < 3; ++b) {
      if (a == b) continue;
      const std::string bundle = "group" + std::to_string(a) + "-group" + std::to_string(b);
      CHECK(between(links, {2 * a, 0}, {2 * b + 1, 0})[2] == bundle);
      CHECK(capacity(links, bundle) == 40e9);
    }
  }
}

TEST_CASE("links are overridden by name", "[platforms][fabric]") {
  const Links links = links_of(expanded(cluster(4, R"(kind: LEAF_SPINE nodes_per_leaf: 2 spines: 4
    links { name: "node0/mlx5_0/tx" bandwidth: 1e9 latency: 7000 }
    links { name: "leaf0-up" down: true }
    links { name: "leaf1-spine2" down: true } links { name: "spine1-leaf1" bandwidth: 5e9 })")));
  CHECK(capacity(links, "node0/mlx5_0/tx") == 1e9);
  CHECK(links[links.find("node0/mlx5_0/tx")].latency == 7000);
  CHECK(links[links.find("leaf0-up")].down);
  CHECK_FALSE(links[links.find("leaf0-down")].down);
  CHECK(capacity(links, "leaf1-up") == Approx(75e9));
  CHECK(capacity(links, "leaf1-down") == Approx(80e9));
}

TEST_CASE("an override of a link that does not exist is refused with the nearest name",
          "[platforms][fabric]") {
  const auto links = Links::build(
      expanded(cluster(2, R"(kind: SINGLE_SWITCH links { name: "node0/mlx5_0/txx" down: true })")));
  REQUIRE_FALSE(links);
  CHECK(links.error().where == "fabric.links[0].name");
  CHECK(links.error().fix == "did you mean 'node0/mlx5_0/tx'?");
}

TEST_CASE("a port or interface that is down has links that are down", "[platforms][fabric]") {
  pb::Platform platform = expanded(cluster(2, "kind: SINGLE_SWITCH"));
  platform.mutable_nodes(1)->mutable_nics(0)->set_down(true);
  platform.mutable_nodes(1)->mutable_interfaces(1)->set_down(true);
  const Links links = links_of(platform);
  CHECK(links[links.find("node1/mlx5_0/rx")].down);
  CHECK(links[links.find("node1/eth0/tx")].down);
  CHECK_FALSE(links[links.find("node0/mlx5_0/rx")].down);
}

TEST_CASE("sockets use the LAN's own links or those of the NIC below", "[platforms][fabric]") {
  const Links links = links_of(expanded(cluster(2, "kind: SINGLE_SWITCH")));
  const auto route = [&](uint32_t a, uint32_t b) {
    std::vector<LinkId> out;
    links.sockets(0, a, 1, b, out);
    return names(links, out);
  };
  CHECK(route(1, 1) == Names{"node0/eth0/tx", "node1/eth0/rx"});
  CHECK(route(3, 3) == Names{"node0/numa1/host", "node0/plx1/pcie-down", "node0/mlx5_1/pcie-down",
                             "node0/mlx5_1/tx", "node1/mlx5_1/rx", "node1/mlx5_1/pcie-up",
                             "node1/plx1/pcie-up", "node1/numa1/host"});
  CHECK(route(4, 4).empty());
}

TEST_CASE("every link is found by its name and names are unique", "[platforms][fabric]") {
  const Links links =
      links_of(expanded(cluster(4, "kind: RAIL_OPTIMISED nodes_per_leaf: 2 spines: 2 ecmp: true")));
  for (LinkId id = 0; id < links.size(); ++id) CHECK(links.find(links[id].name) == id);
  CHECK(links.find("node0/none") == kNoLink);
  CHECK(links.find("") == kNoLink);
}

TEST_CASE("nodes of a symmetric cluster have the same routes", "[platforms][fabric]") {
  const Links links = links_of(expanded(cluster(4, "kind: SINGLE_SWITCH")));
  for (uint32_t node = 1; node < 4; ++node) {
    for (uint32_t gpu = 1; gpu < 4; ++gpu) {
      std::vector<LinkId> first, here;
      links.pcie({0, 0}, {0, gpu}, first);
      links.pcie({node, 0}, {node, gpu}, here);
      REQUIRE(first.size() == here.size());
      for (size_t i = 0; i < first.size(); ++i) {
        CHECK(links[first[i]].capacity == links[here[i]].capacity);
        CHECK(links[first[i]].name.substr(5) == links[here[i]].name.substr(5));
      }
    }
  }
}

TEST_CASE("a platform of 2,048 nodes with 8 GPUs and 8 NICs expands and links",
          "[platforms][fabric]") {
  pb::Platform platform = parse(R"(scale: 2048
    fabric { kind: RAIL_OPTIMISED nodes_per_leaf: 32 spines: 16 }
    nodes { numa {} numa {} switches { name: "plx{i}" count: 4 pcie { generation: 5 } }
      gpus { count: 8 pcie { generation: 5 parent: "plx{i/2}" } nvlink { generation: 4 links: 18 } }
      nvswitch { count: 4 } nics { count: 8 kind: INFINIBAND bandwidth: 50e9 latency: 1
      pcie { generation: 5 parent: "plx{i/2}" } }
      interfaces { name: "eth0" bandwidth: 1e9 addresses: "10.0.0.{i}/16" }
      interfaces { name: "ib{i}" count: 8 addresses: "10.1{k}.0.{i}/16" } })");
  REQUIRE(expand(platform, "test"));
  const Links links = links_of(platform);
  CHECK(platform.nodes_size() == 2048);
  CHECK(platform.dns_size() == 2048);
  CHECK(links.size() > 2048u * 64);
}

}  // namespace rehearse::platforms::fabric_links_test
