// SPDX-License-Identifier: Apache-2.0
// Who reaches whom: addresses, routes, firewalls, containers, names, and the interfaces that NCCL takes.
#include "sim/bringup/network.hpp"

#include <catch2/catch.hpp>

#include "base/document.hpp"
#include "platforms/model/catalogue.hpp"
#include "sim/bringup/interfaces.hpp"
#include "tests/sim/starts.hpp"

namespace rehearse::network_test {
using namespace rehearse;
using namespace rehearse::sim;
using bringup::Answer;
using tests::kSecond;

namespace {

pb::Platform platform_of(const std::string& yaml) {
  pb::Platform platform;
  const auto read = read_document(yaml, "test", platform);
  INFO((read ? "" : read.error().message()));
  REQUIRE(read);
  const auto expanded = platforms::expand(platform, "test");
  INFO((expanded ? "" : expanded.error().message()));
  REQUIRE(expanded);
  return platform;
}

// Two nodes with a LAN, a network of their own each, a bridge and a loopback.
const char* kTwo = R"(
nodes:
  - count: 2
    name: "n{i}"
    gpus: {count: 1, name: g, pcie: {generation: 4, width: 16}}
    interfaces:
      - {name: lo, kind: loopback, addresses: [127.0.0.1/8]}
      - {name: eth0, kind: lan, addresses: ["10.0.0.{i}/24", "fd00::{i}/64"]}
      - {name: docker0, kind: bridge, addresses: [172.17.0.1/16]}
)";

}  // namespace

TEST_CASE("nodes of one network reach each other, bridges and loopbacks stay inside", "[bringup]") {
  const pb::Platform platform = platform_of(kTwo);
  const bringup::Network network(platform);
  CHECK(network.knock(0, "10.0.0.2", 1).answer == Answer::kArrives);
  CHECK(network.knock(0, "10.0.0.2", 1).node == 1);
  CHECK(network.knock(0, "fd00::2", 1).node == 1);
  CHECK(network.knock(1, "172.17.0.1", 1).node == 1);
  CHECK(network.knock(1, "127.0.0.1", 1).node == 1);
  CHECK(network.knock(0, "10.0.0.77", 1).answer == Answer::kNoRoute);
  CHECK(network.knock(0, "192.168.1.1", 1).answer == Answer::kNoRoute);
  CHECK(network.knock(0, "not an address", 1).answer == Answer::kUnreachable);
}

TEST_CASE("the longest route wins and routers join networks", "[bringup]") {
  pb::Platform platform = platform_of(R"(
networks:
  - {name: a, gateways: [10.1.0.254], reaches: [b]}
  - {name: b, gateways: [10.2.0.254], reaches: ["*"]}
  - {name: c, gateways: []}
nodes:
  - {name: x, gpus: {name: g, pcie: {generation: 4, width: 16}}, interfaces: [{name: eth0, kind: lan, network: a, addresses: [10.1.0.1/24]}]}
  - {name: y, gpus: {name: g, pcie: {generation: 4, width: 16}}, interfaces: [{name: eth0, kind: lan, network: b, addresses: [10.2.0.1/24]}]}
  - {name: z, gpus: {name: g, pcie: {generation: 4, width: 16}}, interfaces: [{name: eth0, kind: lan, network: c, addresses: [10.3.0.1/24]}]}
)");
  CHECK(bringup::Network(platform).knock(0, "10.2.0.1", 1).node == 1);
  CHECK(bringup::Network(platform).knock(1, "10.1.0.1", 1).node == 0);
  CHECK(bringup::Network(platform).knock(0, "10.3.0.1", 1).answer == Answer::kNoRoute);
  CHECK(bringup::Network(platform).knock(2, "10.1.0.1", 1).answer == Answer::kUnreachable);
  REQUIRE(set_path(platform, "nodes[0].routes", "[{destination: 10.2.0.0/16, via: 10.1.0.99}]"));
  CHECK(bringup::Network(platform).knock(0, "10.2.0.1", 1).answer == Answer::kNoRoute);
  REQUIRE(set_path(
      platform, "nodes[0].routes",
      "[{destination: default, via: 10.1.0.99}, {destination: 10.2.0.0/24, via: 10.1.0.254}]"));
  CHECK(bringup::Network(platform).knock(0, "10.2.0.1", 1).node == 1);
}

TEST_CASE("the way between two nodes is direct, routed, assumed or none", "[bringup]") {
  using bringup::WayKind;
  const auto way = [](const std::string& own, const std::string& more) {
    const pb::Platform platform = platform_of(
        "nodes:\n"
        "  - {name: a, gpus: {count: 1, name: g, pcie: {generation: 4, width: 16}}, interfaces: "
        "[{name: eth0, kind: lan, addresses: [10.0.0.1/24]}, {name: docker0, kind: bridge, "
        "addresses: [172.17.0.1/16]}]}\n"
        "  - {name: b, gpus: {count: 1, name: g, pcie: {generation: 4, width: 16}}, interfaces: "
        "[{name: eth0, kind: lan, addresses: [" +
        own + "]}, {name: docker0, kind: bridge, addresses: [172.17.0.1/16]}]" + more + "}\n");
    return bringup::Network(platform).way_between(0, 1);
  };
  CHECK(way("10.0.0.2/24", "") == WayKind::kDirect);
  CHECK(way("10.0.0.2/16", "") == WayKind::kDirect);
  CHECK(way("10.0.1.2/24", "") == WayKind::kAssumed);
  // A mask that is too narrow leaves the other node outside, for one of the two directions.
  CHECK(way("10.0.0.200/25", "") == WayKind::kAssumed);
  CHECK(way("10.0.1.2/24", ", routes: [{destination: 10.2.0.0/16, via: 10.0.1.1}]") ==
        WayKind::kNone);
  CHECK(way("10.0.1.2/24", ", routes: [{destination: default, via: 10.0.1.1}]") ==
        WayKind::kAssumed);
}

TEST_CASE("the first firewall rule that fits decides, by port, peer and direction", "[bringup]") {
  pb::Platform platform = platform_of(kTwo);
  const auto answer = [&](uint32_t from, const char* to, uint32_t port) {
    return bringup::Network(platform).knock(from, to, port).answer;
  };
  REQUIRE(
      set_path(platform, "nodes[1].firewall",
               "[{direction: inbound, ports: 29500, action: allow}, {direction: inbound, ports: "
               "1024-65535, peer: 10.0.0.0/24, action: drop}]"));
  CHECK(answer(0, "10.0.0.2", 29500) == Answer::kArrives);
  CHECK(answer(0, "10.0.0.2", 40000) == Answer::kDropped);
  CHECK(answer(0, "10.0.0.2", 22) == Answer::kArrives);
  CHECK(answer(1, "10.0.0.1", 40000) == Answer::kArrives);
  CHECK(answer(1, "10.0.0.2", 40000) == Answer::kArrives);  // inside the node
  REQUIRE(set_path(platform, "nodes[1].firewall", "[{direction: outbound, action: reject}]"));
  CHECK(answer(1, "10.0.0.1", 40000) == Answer::kRefused);
  CHECK(answer(0, "10.0.0.2", 40000) == Answer::kArrives);
  REQUIRE(set_path(platform, "nodes[1].interfaces[1].down", "true"));
  CHECK(answer(0, "10.0.0.2", 22) == Answer::kNoRoute);
}

TEST_CASE("a container is reached at published ports only and goes out freely", "[bringup]") {
  pb::Platform platform = platform_of(R"(
nodes:
  - count: 2
    name: "n{i}"
    gpus: {count: 1, name: g, pcie: {generation: 4, width: 16}}
    interfaces:
      - {name: lo, kind: loopback, addresses: [127.0.0.1/8]}
      - {name: eth0, kind: lan, addresses: ["10.0.0.{i}/24"]}
)");
  REQUIRE(set_path(platform, "nodes[1].interfaces",
                   "[{name: lo, kind: loopback, addresses: [127.0.0.1/8]}, {name: host, kind: lan, "
                   "addresses: [10.0.0.2/24]}, {name: eth0, kind: container, addresses: "
                   "[172.18.0.2/16], published: [29500]}]"));
  const bringup::Network network(platform);
  CHECK(network.knock(0, "10.0.0.2", 29500).node == 1);
  CHECK(network.knock(0, "10.0.0.2", 40000).answer == Answer::kRefused);
  CHECK(network.knock(1, "10.0.0.1", 40000).answer == Answer::kArrives);
  CHECK(network.visible(1).size() == 2);
  const auto own = bringup::nccl_interface(network, platform, 1, {});
  REQUIRE(own);
  CHECK(own->address == "172.18.0.2");
  CHECK(network.knock(0, own->address, 40000).answer != Answer::kArrives);
}

TEST_CASE("names resolve by hosts file, then name service, with delays and failures", "[bringup]") {
  pb::Platform platform = platform_of(kTwo);
  using Found = bringup::Lookup::Result;
  CHECK(bringup::Network(platform).lookup(0, "n1").address == "10.0.0.2");
  CHECK(bringup::Network(platform).lookup(0, "nobody").result == Found::kUnknown);
  CHECK(bringup::Network(platform).lookup(0, "10.9.9.9").address == "10.9.9.9");
  REQUIRE(set_path(platform, "nodes[0].hosts",
                   "[{name: n1, address: 10.0.0.9, delay: 10s}, {name: n0, unanswered: true}]"));
  const bringup::Network network(platform);
  CHECK(network.lookup(0, "n1").address == "10.0.0.9");
  CHECK(network.lookup(0, "n1").delay == 10 * kSecond);
  CHECK(network.lookup(1, "n1").address == "10.0.0.2");
  CHECK(network.lookup(0, "n0").result == Found::kUnanswered);
}

TEST_CASE("NCCL takes InfiniBand interfaces first and docker last", "[bringup]") {
  pb::Platform platform = platform_of(kTwo);
  const auto chosen = [&](const std::map<std::string, std::string>& env) {
    const auto own = bringup::nccl_interface(bringup::Network(platform), platform, 0, env);
    return own ? own->name + " " + own->address : "none";
  };
  CHECK(chosen({}) == "eth0 10.0.0.1");
  CHECK(chosen({{"NCCL_SOCKET_IFNAME", "^eth"}}) == "lo 127.0.0.1");
  CHECK(chosen({{"NCCL_SOCKET_IFNAME", "=docker0"}}) == "docker0 172.17.0.1");
  CHECK(chosen({{"NCCL_SOCKET_IFNAME", "wl"}}) == "none");
  CHECK(chosen({{"NCCL_SOCKET_FAMILY", "AF_INET6"}}) == "eth0 fd00::1");
  REQUIRE(set_path(platform, "nodes[0].interfaces[1].down", "true"));
  CHECK(chosen({}) == "docker0 172.17.0.1");
}

}  // namespace rehearse::network_test
