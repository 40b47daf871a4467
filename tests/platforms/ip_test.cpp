// SPDX-License-Identifier: Apache-2.0
#include "platforms/model/ip.hpp"

#include "platforms/model/draw.hpp"
#include "tests/platforms/platforms_for_tests.hpp"

namespace rehearse::platforms::ip_test {
namespace {

const std::string kLan =
    R"(interfaces { name: "eth0" bandwidth: 1e9 network: "a" addresses: "10.0.0.{i}/16" })";

}  // namespace

TEST_CASE("nodes in a network with a router get a default route per family", "[platforms][ip]") {
  const pb::Platform platform = expanded("nodes { count: 2 " + kLan + R"( }
    nodes { )" + kLan + R"( routes { destination: "10.9.0.0/16" via: "10.0.0.7" } }
    nodes { interfaces { name: "eth0" network: "b" addresses: "10.1.0.{i}/16" } }
    networks { name: "a" gateways: "10.0.255.254" gateways: "fd00::1" gateways: "10.0.255.253" reaches: "b" })");
  REQUIRE(platform.nodes(1).routes_size() == 2);
  CHECK(platform.nodes(1).routes(0).destination() == "default");
  CHECK(platform.nodes(1).routes(0).via() == "10.0.255.254");
  CHECK(platform.nodes(1).routes(0).interface() == "eth0");
  CHECK(platform.nodes(1).routes(1).via() == "fd00::1");
  CHECK(platform.nodes(2).routes_size() == 1);
  CHECK(platform.nodes(3).routes().empty());
  pb::Platform again = platform;
  REQUIRE(expand(again, "test"));
  CHECK(again.SerializeAsString() == platform.SerializeAsString());
}

TEST_CASE("a hosts file counts nodes in its addresses", "[platforms][ip]") {
  const pb::Platform platform = expanded("nodes { count: 2 " + kLan +
                                         R"( hosts { name: "node{i}" address: "127.0.1.{i}" } })");
  CHECK(platform.nodes(1).hosts(0).name() == "node1");
  CHECK(platform.nodes(1).hosts(0).address() == "127.0.1.2");
}

TEST_CASE("containers may have one address on every node", "[platforms][ip]") {
  const pb::Platform platform = expanded(
      R"(nodes { count: 2 interfaces { name: "eth0" kind: CONTAINER addresses: "172.18.0.2/16" published: "29500" } })");
  CHECK(platform.nodes(1).interfaces(0).addresses(0) == "172.18.0.2/16");
  CHECK(draw_text(platform).find("in a container  published 29500") != std::string::npos);
}

TEST_CASE("rules, routes and hosts are shown in the tree", "[platforms][ip][draw]") {
  const std::string text = draw_text(expanded("nodes { " + kLan + R"(
    firewall { direction: INBOUND protocol: TCP ports: "1024-65535" action: REJECT peer: "10.0.0.0/8" interface: "eth0" }
    firewall { action: ALLOW }
    routes { destination: "default" via: "10.0.0.1" }
    hosts { name: "gone" } hosts { name: "slow" unanswered: true } })"));
  for (const char* part :
       {"reject inbound TCP, ports 1024-65535, peer 10.0.0.0/8, on eth0", "allow, all ports",
        "default via 10.0.0.1", "gone  unknown", "slow  unanswered"}) {
    CHECK(text.find(part) != std::string::npos);
  }
}

TEST_CASE("IP settings that make no sense are refused at their place", "[platforms][ip]") {
  const auto place = [](const std::string& inside) {
    return refused("nodes { " + kLan + inside + "}").where;
  };
  CHECK(place(R"(routes { destination: "lan" via: "10.0.0.1" })") ==
        "test: nodes[0].routes[0].destination");
  CHECK(place(R"(routes { destination: "default" via: "10.0.0.1/8" })") ==
        "test: nodes[0].routes[0].via");
  CHECK(place(R"(routes { destination: "default" })") == "test: nodes[0].routes[0]");
  CHECK(place(R"(routes { destination: "default" interface: "eth9" })") ==
        "test: nodes[0].routes[0].interface");
  CHECK(place(R"(firewall { interface: "eth9" })") == "test: nodes[0].firewall[0].interface");
  CHECK(place(R"(hosts { name: "a" address: "b" })") == "test: nodes[0].hosts[0].address");
  CHECK(place(R"(hosts { address: "10.0.0.1" })") == "test: nodes[0].hosts[0].name");
  CHECK(place(R"(ephemeral_ports: "9-1")") == "test: nodes[0].ephemeral_ports");
  CHECK(place("ports_in_use: 70000") == "test: nodes[0].ports_in_use[0]");
  CHECK(place(R"(interfaces { name: "eth1" published: "80" })") ==
        "test: nodes[0].interfaces[1].published");
  CHECK(place(R"(interfaces { name: "eth1" kind: CONTAINER published: "x" })") ==
        "test: nodes[0].interfaces[1].published[0]");
}

TEST_CASE("routers that lead nowhere are refused at their place", "[platforms][ip]") {
  const auto place = [](const std::string& outside) {
    return refused("nodes { " + kLan + "} " + outside).where;
  };
  CHECK(place("networks {}") == "test: networks[0].name");
  CHECK(place(R"(networks { name: "a" } networks { name: "a" })") == "test: networks[1].name");
  CHECK(place(R"(networks { name: "a" gateways: "x" })") == "test: networks[0].gateways[0]");
  CHECK(place(R"(networks { name: "a" reaches: "c" })") == "test: networks[0].reaches[0]");
  CHECK(place(R"(dns { name: "n" address: "10.0.0.1/16" })") == "test: dns[0].address");
}

}  // namespace rehearse::platforms::ip_test
