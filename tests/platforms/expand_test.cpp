// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "tests/platforms/platforms_for_tests.hpp"

namespace rehearse::platforms::expand_test {

TEST_CASE("counts become copies with names, rails, bus ids and addresses", "[platforms][expand]") {
  const pb::Platform platform = expanded(kTwoSockets + "scale: 3");
  REQUIRE(platform.nodes_size() == 3);
  CHECK(platform.scale() == 0);
  const pb::Node& node = platform.nodes(2);
  CHECK(node.name() == "node2");
  CHECK(node.count() == 0);
  REQUIRE(node.gpus_size() == 4);
  CHECK(node.gpus(3).name() == "gpu3");
  CHECK(node.gpus(3).pcie().parent() == "plx1");
  CHECK(node.gpus(3).speed() == 1);
  CHECK(node.gpus(3).count() == 0);
  CHECK(node.gpus(0).bus_id() < node.gpus(1).bus_id());
  REQUIRE(node.nics_size() == 2);
  CHECK(node.nics(1).name() == "mlx5_1");
  CHECK(node.nics(1).rail() == 1);
  CHECK(node.nics(1).interface() == "ib1");
  CHECK(node.interfaces(1).addresses(0) == "10.0.0.3/16");
  CHECK(node.interfaces(3).name() == "ib1");
  CHECK(node.interfaces(3).addresses(0) == "10.11.0.3/16");
  CHECK(node.shm() == 512);
}

TEST_CASE("every node's name resolves to its first LAN address", "[platforms][expand]") {
  const pb::Platform platform =
      expanded(kTwoSockets + R"(scale: 2 dns { name: "node1" address: "192.168.0.9" })");
  REQUIRE(platform.dns_size() == 2);
  CHECK(platform.dns(0).address() == "192.168.0.9");
  CHECK(platform.dns(1).name() == "node0");
  CHECK(platform.dns(1).address() == "10.0.0.1");
}

TEST_CASE("the node list is repeated in order until the scale is reached", "[platforms][expand]") {
  const std::string two = R"(
    nodes { name: "big{i}" count: 2 gpus { count: 2 pcie { generation: 4 } } }
    nodes { name: "small{i}" gpus { pcie { generation: 3 } } })";
  const pb::Platform five = expanded(two + "scale: 5");
  std::vector<std::string> found;
  for (const auto& node : five.nodes()) found.push_back(node.name());
  CHECK(found == std::vector<std::string>{"big0", "big1", "small2", "big3", "big4"});
  CHECK(expanded(two + "scale: 1").nodes_size() == 1);
}

TEST_CASE("a name without a counter gets the index when there are copies", "[platforms][expand]") {
  const pb::Platform platform =
      expanded(R"(nodes { name: "worker" count: 2 gpus { pcie { generation: 4 } } }
                  nodes { name: "head" gpus { pcie { generation: 4 } } })");
  CHECK(platform.nodes(1).name() == "worker1");
  CHECK(platform.nodes(2).name() == "head");
}

TEST_CASE("expanding twice changes nothing", "[platforms][expand]") {
  pb::Platform platform = expanded(kTwoSockets + "scale: 3 fabric { kind: LEAF_SPINE }");
  const std::string before = platform.SerializeAsString();
  REQUIRE(expand(platform, "test"));
  CHECK(platform.SerializeAsString() == before);
}

TEST_CASE("what had to be assumed is told once", "[platforms][expand]") {
  const pb::Platform platform = expanded(R"(nodes { count: 2 gpus { pcie { generation: 4 } }
    nics { count: 2 bandwidth: 50e9 } interfaces { name: "eth0" addresses: "10.0.0.{i}/24" } })");
  const auto told = [&](std::string_view part) {
    return std::count_if(platform.assumptions().begin(), platform.assumptions().end(),
                         [&](const std::string& text) { return text.find(part) != text.npos; });
  };
  CHECK(told("InfiniBand") == 1);
  CHECK(told("10 Gbit/s") == 1);
  CHECK(told("one non-blocking switch") == 1);
  CHECK(platform.nodes(0).nics(0).pcie().generation() == 5);
  CHECK(platform.fabric().kind() == pb::SINGLE_SWITCH);
}

TEST_CASE("sources of GPU data sheets move to the platform", "[platforms][expand]") {
  const pb::Platform platform = expanded(R"(nodes { count: 2 gpus { count: 2 pcie { generation: 4 }
    sources { figure: "GPU" url: "https://example.org" } } })");
  REQUIRE(platform.sources_size() == 1);
  CHECK(platform.sources(0).figure() == "GPU");
  CHECK(platform.nodes(1).gpus(1).sources().empty());
}

TEST_CASE("what does not fit together is refused at its place", "[platforms][expand]") {
  const std::string gpu = "gpus { pcie { generation: 4 } }";
  const auto place = [](const std::string& text) { return refused(text).where; };
  CHECK(place("") == "test: nodes");
  CHECK(
      place(
          "nodes { " + gpu + "} nodes { " + gpu +
          R"(nics { bandwidth: 1 } nics { bandwidth: 1 name: "a" } nics { bandwidth: 1 name: "a" } })") ==
      "test: nodes[1].nics[2].name");
  CHECK(place("nodes { " + gpu + R"(name: "a" } nodes { name: "a" })") == "test: nodes[1].name");
  CHECK(place(R"(nodes { name: "a/b" })") == "test: nodes[0].name");
  CHECK(place(R"(nodes { gpus { pcie { generation: 4 parent: "plx" } } })") ==
        "test: nodes[0].gpus[0].pcie.parent");
  CHECK(place(R"(nodes { switches { name: "a" pcie { generation: 4 parent: "b" } }
                         switches { name: "b" pcie { generation: 4 parent: "a" } } })") ==
        "test: nodes[0].switches[0].pcie.parent");
  CHECK(place("nodes { numa {} gpus { pcie { generation: 4 numa: 1 } } }") ==
        "test: nodes[0].gpus[0].pcie.numa");
  CHECK(place("nodes { gpus {} }") == "test: nodes[0].gpus[0].pcie");
  CHECK(
      place(
          "nodes { gpus { count: 2 nvlink { generation: 3 links: 12 } } nvlinks { a: 0 b: 2 } }") ==
      "test: nodes[0].nvlinks[0].b");
  CHECK(place("nodes { gpus { nvlink { generation: 3 links: 12 } } nvlinks { a: 0 b: 0 } }") ==
        "test: nodes[0].nvlinks[0].b");
  CHECK(place("nodes { gpus { count: 2 pcie { generation: 4 } } nvlinks { a: 0 b: 1 } }") ==
        "test: nodes[0].nvlinks[0].a");
  CHECK(place("nodes { gpus { count: 2 nvlink { generation: 3 links: 1 } } nvlinks { a: 0 b: 1 "
              "links: 2 } }") == "test: nodes[0].gpus[0].nvlink.links");
  CHECK(place("nodes { " + gpu + "nics {} }") == "test: nodes[0].nics[0].bandwidth");
  CHECK(place("nodes { " + gpu + R"(nics { bandwidth: 1 interface: "ib7" } })") ==
        "test: nodes[0].nics[0].interface");
  CHECK(place(R"(nodes { interfaces { name: "eth0" addresses: "10.0.0" } })") ==
        "test: nodes[0].interfaces[0].addresses[0]");
  CHECK(place(R"(nodes { count: 2 interfaces { name: "eth0" addresses: "10.0.0.1/24" } })") ==
        "test: nodes[1].interfaces[0].addresses[0]");
  CHECK(place(R"(nodes { count: 300 interfaces { name: "eth0" addresses: "10.0.0.{i}/24" } })") ==
        "test: nodes[254].interfaces[0].addresses[0]");
  CHECK(place(R"(nodes { firewall { ports: "http" } })") == "test: nodes[0].firewall[0].ports");
  CHECK(place(R"(nodes { firewall { peer: "lan" } })") == "test: nodes[0].firewall[0].peer");
}

TEST_CASE("an unknown PCIe switch is answered with the nearest one", "[platforms][expand]") {
  const Error error = refused(R"(nodes { switches { name: "plx0" pcie { generation: 4 } }
                                         gpus { pcie { generation: 4 parent: "plx9" } } })");
  CHECK(error.fix == "did you mean 'plx0'?");
}

TEST_CASE("sizes beyond the limits are refused before they are made", "[platforms][expand]") {
  CHECK(refused("nodes { count: 60000 } nodes { count: 60000 }").code == Code::kLimit);
  CHECK(refused("scale: 4000000000 nodes {}").code == Code::kLimit);
  CHECK(refused("nodes { gpus { count: 4000000000 } }").code == Code::kLimit);
  CHECK(refused("nodes { count: 65000 gpus { count: 1000 pcie { generation: 4 } } }").code ==
        Code::kLimit);
}

}  // namespace rehearse::platforms::expand_test
