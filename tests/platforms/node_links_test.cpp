// SPDX-License-Identifier: Apache-2.0
#include "platforms/model/pcie.hpp"
#include "tests/platforms/platforms_for_tests.hpp"

namespace rehearse::platforms::node_links_test {
namespace {

constexpr double kGen4x16 = 16e9 / 8 * 128 / 130 * 16;

using Walk = void (Links::*)(GpuRef, GpuRef, std::vector<LinkId>&) const;

Names walk(const Links& links, Walk way, uint32_t from, uint32_t to) {
  std::vector<LinkId> route;
  (links.*way)({0, from}, {0, to}, route);
  return names(links, route);
}

}  // namespace

TEST_CASE("PCIe bandwidth follows generation and width", "[platforms][links]") {
  pb::PcieLink link;
  CHECK(bandwidth_of(link) == 0);
  link.set_generation(3);
  CHECK(bandwidth_of(link) == Approx(15.754e9).epsilon(1e-4));
  link.set_generation(4);
  CHECK(bandwidth_of(link) == Approx(31.508e9).epsilon(1e-4));
  link.set_width(4);
  CHECK(bandwidth_of(link) == Approx(7.877e9).epsilon(1e-4));
  link.set_generation(1);
  link.set_width(1);
  CHECK(bandwidth_of(link) == Approx(0.25e9));
  link.set_generation(9);
  CHECK(bandwidth_of(link) == 0);
  link.set_bandwidth(1e9);
  CHECK(bandwidth_of(link) == 1e9);
}

TEST_CASE("PCIe peers meet at their switch, else at the CPUs", "[platforms][links]") {
  const Links links = links_of(expanded(kTwoSockets));
  CHECK(walk(links, &Links::pcie, 0, 1) == Names{"node0/gpu0/pcie-up", "node0/gpu1/pcie-down"});
  CHECK(walk(links, &Links::pcie, 0, 3) == Names{"node0/gpu0/pcie-up", "node0/plx0/pcie-up",
                                                 "node0/numa0/host", "node0/numa0/socket-out",
                                                 "node0/numa1/socket-in", "node0/numa1/host",
                                                 "node0/plx1/pcie-down", "node0/gpu3/pcie-down"});
  CHECK(links[links.find("node0/gpu0/pcie-up")].capacity == Approx(kGen4x16));
  CHECK(links[links.find("node0/numa0/socket-out")].capacity == 50e9);
  CHECK(links[links.find("node0/numa1/socket-in")].capacity == 60e9);
  CHECK(links[links.find("node0/numa1/host")].capacity == 200e9);
}

TEST_CASE("access control services send peers through the root complex", "[platforms][links]") {
  pb::Platform platform = expanded(kTwoSockets);
  platform.mutable_nodes(0)->set_acs(true);
  const Links links = links_of(platform);
  CHECK(walk(links, &Links::pcie, 0, 1) == Names{"node0/gpu0/pcie-up", "node0/plx0/pcie-up",
                                                 "node0/numa0/host", "node0/plx0/pcie-down",
                                                 "node0/gpu1/pcie-down"});
}

TEST_CASE("shared memory crosses the host link once per store and once per load",
          "[platforms][links]") {
  const Links links = links_of(expanded(kTwoSockets));
  CHECK(walk(links, &Links::host, 0, 1) == Names{"node0/gpu0/pcie-up", "node0/plx0/pcie-up",
                                                 "node0/numa0/host", "node0/numa0/host",
                                                 "node0/plx0/pcie-down", "node0/gpu1/pcie-down"});
  CHECK(walk(links, &Links::host, 3, 0) == Names{"node0/gpu3/pcie-up", "node0/plx1/pcie-up",
                                                 "node0/numa1/host", "node0/numa1/socket-out",
                                                 "node0/numa0/socket-in", "node0/numa0/host",
                                                 "node0/plx0/pcie-down", "node0/gpu0/pcie-down"});
}

TEST_CASE("GPUDirect stays below the switch, without it data pass host memory",
          "[platforms][links]") {
  const Links links = links_of(expanded(kTwoSockets));
  std::vector<LinkId> route;
  links.gpu_to_nic({0, 2}, 1, true, route);
  CHECK(names(links, route) == Names{"node0/gpu2/pcie-up", "node0/mlx5_1/pcie-down"});
  route.clear();
  links.nic_to_gpu(1, {0, 2}, false, route);
  CHECK(names(links, route) == Names{"node0/mlx5_1/pcie-up", "node0/plx1/pcie-up",
                                     "node0/numa1/host", "node0/numa1/host", "node0/plx1/pcie-down",
                                     "node0/gpu2/pcie-down"});
  route.clear();
  links.gpu_to_host({0, 0}, route);
  links.host_to_gpu({0, 0}, route);
  CHECK(names(links, route) == Names{"node0/gpu0/pcie-up", "node0/plx0/pcie-up", "node0/numa0/host",
                                     "node0/numa0/host", "node0/plx0/pcie-down",
                                     "node0/gpu0/pcie-down"});
}

TEST_CASE("distances are those of the PCIe tree", "[platforms][links]") {
  const Links links = links_of(expanded(R"(nodes { numa {} numa {}
    switches { name: "top" pcie { generation: 4 } }
    switches { name: "a" pcie { generation: 4 parent: "top" } }
    switches { name: "b" pcie { generation: 4 parent: "top" } }
    gpus { count: 2 pcie { generation: 4 parent: "a" } }
    gpus { pcie { generation: 4 parent: "b" } }
    gpus { pcie { generation: 4 numa: 0 } }
    gpus { pcie { generation: 4 numa: 1 } }
    nics { bandwidth: 1e9 pcie { generation: 4 parent: "b" } } })"));
  using Distance = Links::Distance;
  CHECK(links.distance(GpuRef{0, 0}, GpuRef{0, 1}) == Distance::kPix);
  CHECK(links.distance(GpuRef{0, 0}, GpuRef{0, 2}) == Distance::kPxb);
  CHECK(links.distance(GpuRef{0, 0}, GpuRef{0, 3}) == Distance::kPhb);
  CHECK(links.distance(GpuRef{0, 0}, GpuRef{0, 4}) == Distance::kSys);
  CHECK(links.distance(GpuRef{0, 2}, 0u) == Distance::kPix);
  CHECK(links.distance(GpuRef{0, 4}, 0u) == Distance::kSys);
}

TEST_CASE("an NVSwitch joins all GPUs, and across nodes of one domain", "[platforms][links]") {
  pb::Platform platform = expanded(R"(nodes { count: 4 gpus { count: 2 c2c: 450e9
    nvlink { generation: 5 links: 18 } } nvswitch { count: 9 domain: "rack{i/2}" } })");
  CHECK(platform.nodes(3).nvswitch().domain() == "rack1");
  const Links links = links_of(platform);
  std::vector<LinkId> route;
  REQUIRE(links.nvlink({0, 0}, {0, 1}, route));
  CHECK(names(links, route) == Names{"node0/gpu0/nvlink-out", "node0/gpu1/nvlink-in"});
  CHECK(links[route[0]].capacity == 900e9);
  route.clear();
  REQUIRE(links.nvlink({0, 0}, {1, 1}, route));
  CHECK(names(links, route) == Names{"node0/gpu0/nvlink-out", "node1/gpu1/nvlink-in"});
  CHECK_FALSE(links.nvlink({1, 0}, {2, 0}, route));
  CHECK(route.size() == 2);
  platform.mutable_nodes(0)->mutable_gpus(1)->mutable_nvlink()->set_links(0);
  CHECK_FALSE(links_of(platform).nvlink({0, 0}, {0, 1}, route));
}

TEST_CASE("without a switch only directly joined GPUs have NVLink", "[platforms][links]") {
  const Links links = links_of(expanded(R"(nodes {
    gpus { count: 3 pcie { generation: 3 } nvlink { generation: 2 links: 6 } }
    nvlinks { a: 0 b: 1 links: 2 } nvlinks { a: 2 b: 1 } })"));
  std::vector<LinkId> route;
  REQUIRE(links.nvlink({0, 1}, {0, 0}, route));
  CHECK(names(links, route) == Names{"node0/gpu1-gpu0/nvlink"});
  CHECK(links[route[0]].capacity == 50e9);
  REQUIRE(links.nvlink({0, 1}, {0, 2}, route));
  CHECK(links[route[1]].capacity == 25e9);
  CHECK_FALSE(links.nvlink({0, 0}, {0, 2}, route));
}

TEST_CASE("a GPU on a coherent link reaches host memory and NICs through it",
          "[platforms][links]") {
  const Links links = links_of(expanded(R"(nodes { numa { memory_bandwidth: 500e9 }
    gpus { c2c: 450e9 } nics { kind: SLINGSHOT bandwidth: 25e9 pcie { generation: 5 width: 8 } } })"));
  std::vector<LinkId> route;
  links.gpu_to_host({0, 0}, route);
  CHECK(names(links, route) == Names{"node0/gpu0/c2c-out", "node0/numa0/host"});
  CHECK(links[route[0]].kind == LinkKind::kC2c);
  route.clear();
  links.gpu_to_nic({0, 0}, 0, true, route);
  CHECK(names(links, route) ==
        Names{"node0/gpu0/c2c-out", "node0/numa0/host", "node0/cxi0/pcie-down"});
}

TEST_CASE("a patch of PCIe width acts on the links", "[platforms][links]") {
  pb::Platform platform = expanded(kTwoSockets);
  platform.mutable_nodes(0)->mutable_gpus(1)->mutable_pcie()->set_width(4);
  const Links links = links_of(platform);
  CHECK(links[links.find("node0/gpu1/pcie-up")].capacity == Approx(kGen4x16 / 4));
  CHECK(links[links.find("node0/gpu0/pcie-up")].capacity == Approx(kGen4x16));
}

TEST_CASE("a patch that breaks the tree is refused at its place", "[platforms][links]") {
  const pb::Platform good = expanded(kTwoSockets);
  const auto place = [&](auto change) {
    pb::Platform platform = good;
    change(*platform.mutable_nodes(0));
    const auto links = Links::build(platform);
    REQUIRE_FALSE(links);
    return links.error().where;
  };
  CHECK(place([](pb::Node& node) { node.mutable_gpus(1)->mutable_pcie()->set_parent("x"); }) ==
        "nodes[0].gpus[1].pcie.parent");
  CHECK(place([](pb::Node& node) { node.mutable_nics(1)->mutable_pcie()->set_numa(7); }) ==
        "nodes[0].nics[1].pcie.numa");
  CHECK(place([](pb::Node& node) {
          node.mutable_switches(1)->mutable_pcie()->set_parent("plx1");
        }) == "nodes[0].switches[1].pcie.parent");
  CHECK(place([](pb::Node& node) { node.add_nvlinks()->set_b(9); }) == "nodes[0].nvlinks[0]");
}

TEST_CASE("disks and shares have links for each direction", "[platforms][links]") {
  const Links links = links_of(expanded(kTwoSockets + R"(
    storage { name: "lustre" read: 40e9 write: 20e9 } nodes {
      storage { name: "nvme" read: 6e9 write: 3e9 } })"));
  std::vector<LinkId> route;
  links.host_to_disk(1, 0, route);
  links.disk_to_host(1, 0, route);
  links.host_to_share(0, 0, route);
  links.share_to_host(0, 0, route);
  CHECK(names(links, route) == Names{"node1/nvme/write", "node1/nvme/read", "node0/eth0/tx",
                                     "lustre/write", "lustre/read", "node0/eth0/rx"});
  CHECK(links[route[0]].capacity == 3e9);
  CHECK(links[route[3]].capacity == 20e9);
}

}  // namespace rehearse::platforms::node_links_test
