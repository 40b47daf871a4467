// SPDX-License-Identifier: Apache-2.0
// One reading of NCCL's variables for the models, the start of a job and the static check.
#include <catch2/catch.hpp>

#include "sim/nccl/environment.hpp"
#include "sim/nccl/networks.hpp"
#include "sim/nccl/variables.hpp"

namespace rehearse::sim::reading_test {

using Environment = std::map<std::string, std::string>;

TEST_CASE("filters are lists of prefixes, exact names and exclusions", "[sim][variables]") {
  struct Row {
    const char* filter;
    const char* name;
    bool interface;
    bool adapter;
  };
  const Row rows[] = {
      {"", "mlx5_0", true, true},
      {"mlx5", "mlx5_0", true, true},
      {"mlx5_0", "mlx5_0", true, true},
      {"mlx5_1", "mlx5_10", true, true},  // a prefix
      {"=mlx5_1", "mlx5_10", false, false},
      {"=mlx5_1", "mlx5_1", true, true},
      {"MLX5_0", "mlx5_0", false, false},  // names keep their case
      {"mlx5_0:1", "mlx5_0", true, true},
      {"mlx5_0:2", "mlx5_0", true, false},  // interfaces have no ports
      {"mlx5_0:", "mlx5_0", true, false},   // port 0
      {"mlx5_0:1:3", "mlx5_0", true, true},
      {"^mlx5_0:2", "mlx5_0", false, true},
      {"^mlx5_0:1", "mlx5_0", false, false},
      {"^mlx5_0", "mlx5_1", true, true},
      {"^mlx5_0", "mlx5_0", false, false},
      {"^=mlx5_1", "mlx5_10", true, true},
      {"^=mlx5_1", "mlx5_1", false, false},
      {"mlx5_0,mlx5_2", "mlx5_2", true, true},
      {"mlx5_0,mlx5_2", "mlx5_1", false, false},
      {"mlx5_0, mlx5_2", "mlx5_2", false, false},  // the space belongs to the name
      {",,mlx5_2,", "mlx5_2", true, true},
      {"^", "mlx5_0", false, false},  // an empty list fits everything
      {"=", "mlx5_0", true, true},
      {"=^mlx5", "mlx5_0", false, false},
  };
  for (const Row& row : rows) {
    INFO(row.filter << " on " << row.name);
    CHECK(name_allowed(row.name, row.filter) == row.interface);
    CHECK(hca_allowed(row.name, row.filter) == row.adapter);
  }
}

TEST_CASE("numbers are read as strtoll reads them", "[sim][variables]") {
  const auto read = [](const char* text) { return whole_number({{"X", text}}, "X", 7); };
  CHECK(read("") == 7);
  CHECK(read("1") == 1);
  CHECK(read(" 2") == 2);
  CHECK(read("0x10") == 16);
  CHECK(read("010") == 8);
  CHECK(read("-2") == -2);
  CHECK(read("3 ports") == 3);
  CHECK(read("yes") == 0);
  CHECK(read("99999999999999999999") == 7);
  CHECK(whole_number({}, "X", 7) == 7);
  CHECK(number_note("X", "4").empty());
  CHECK(number_note("X", "yes") == "X=yes is not a whole number; NCCL reads 0");
  CHECK_THAT(number_note("X", "99999999999999999999"), Catch::Contains("keeps its default"));
}

TEST_CASE("NCCL_NET is read in any case of letters", "[sim][variables]") {
  const auto asked = [](const char* value) { return asked_network({{"NCCL_NET", value}}); };
  CHECK(asked("") == NetworkLibrary::kAny);
  for (const char* value : {"IB", "ib", "Ib"}) CHECK(asked(value) == NetworkLibrary::kIb);
  for (const char* value : {"Socket", "SOCKET", "socket"}) {
    CHECK(asked(value) == NetworkLibrary::kSocket);
  }
  CHECK(asked("aws libfabric") == NetworkLibrary::kLibfabric);
  CHECK(asked(" IB") == NetworkLibrary::kUnknown);
  CHECK(asked("IB,Socket") == NetworkLibrary::kUnknown);
}

TEST_CASE("what keeps a rank from its adapters is one answer", "[sim][variables]") {
  pb::Node node;
  node.set_name("node0");
  for (const char* name : {"mlx5_0", "mlx5_1"}) {
    pb::Nic& nic = *node.add_nics();
    nic.set_name(name);
    nic.set_kind(pb::INFINIBAND);
  }
  pb::Nic& efa = *node.add_nics();
  efa.set_name("rdmap0");
  efa.set_kind(pb::EFA);
  pb::Nic& lan = *node.add_nics();
  lan.set_name("eth0");
  lan.set_kind(pb::ETHERNET);
  const auto adapters = [&](const Environment& env) { return usable_adapters(node, env); };
  using List = std::vector<uint32_t>;
  CHECK(adapters({}) == List{0, 1, 2});
  CHECK(adapters({{"NCCL_NET", "ib"}}) == List{0, 1});
  CHECK(adapters({{"NCCL_NET", "OFI"}}) == List{2});
  CHECK(adapters({{"NCCL_NET", "SOCKET"}}).empty());
  CHECK(adapters({{"NCCL_IB_DISABLE", "1"}}) == List{2});
  CHECK(adapters({{"NCCL_IB_DISABLE", "yes"}}) == List{0, 1, 2});
  CHECK(adapters({{"NCCL_IB_HCA", "mlx5_1:1"}}) == List{1, 2});
  CHECK(adapters({{"NCCL_IB_HCA", "mlx5_0:2"}}) == List{2});
  for (const Environment& env : {Environment{}, Environment{{"NCCL_NET", "SOCKET"}},
                                 Environment{{"NCCL_NET", "IB"}, {"NCCL_IB_HCA", "mlx5_0:2"}},
                                 Environment{{"NCCL_NET", "IB"}, {"NCCL_IB_DISABLE", "1"}}}) {
    CHECK(rdma_refusal(node, env).empty() == !adapters(env).empty());
  }
  CHECK(rdma_refusal(node, {{"NCCL_NET", "SOCKET"}}) == "NCCL_NET=SOCKET");
  // What is asked for and cannot be had ends the start.
  CHECK(network_refusal(node, {{"NCCL_NET", "SOCKET"}}).empty());
  CHECK_THAT(network_refusal(node, {{"NCCL_NET", "IB"}, {"NCCL_IB_DISABLE", "1"}}),
             Catch::Contains("NCCL_IB_DISABLE=1"));
  CHECK_THAT(network_refusal(node, {{"NCCL_NET", "IB"}, {"NCCL_IB_HCA", "mlx5_0:2"}}),
             Catch::Contains("NCCL_IB_HCA=mlx5_0:2"));
  CHECK_FALSE(network_refusal(node, {{"NCCL_NET", "Infiniband"}}).empty());
}

TEST_CASE("interfaces are taken by class and family", "[sim][variables]") {
  pb::Node node;
  const auto add = [&](const char* name, const char* address) {
    pb::Interface& face = *node.add_interfaces();
    face.set_name(name);
    face.add_addresses(address);
  };
  add("lo", "127.0.0.1/8");
  add("docker0", "172.17.0.1/16");
  add("eth0", "10.0.0.1/16");
  add("eth1", "fd00::1/64");
  using List = std::vector<uint32_t>;
  CHECK(usable_interfaces(node, {}) == List{2, 3});
  CHECK(usable_interfaces(node, {{"NCCL_SOCKET_FAMILY", "AF_INET6"}}) == List{3});
  CHECK(usable_interfaces(node, {{"NCCL_SOCKET_FAMILY", "AF_INET"}}) == List{2});
  CHECK(usable_interfaces(node, {{"NCCL_SOCKET_FAMILY", "ipv6"}}) == List{2, 3});
  CHECK(usable_interfaces(node, {{"NCCL_SOCKET_IFNAME", "docker"}}) == List{1});
  CHECK(usable_interfaces(node, {{"NCCL_SOCKET_IFNAME", "^docker,lo"}}) == List{2, 3});
  CHECK(usable_interfaces(node, {{"NCCL_SOCKET_IFNAME", "ETH0"}}).empty());
  add("ib0", "10.1.0.1/16");
  CHECK(usable_interfaces(node, {}) == List{4});
  CHECK(interface_class("lo", {}) > interface_class("docker0", {}));
}

TEST_CASE("values that NCCL reads alike mean the same", "[sim][variables]") {
  const auto same = [](const char* name, const char* a, const char* b) {
    return meaning_of(name, a) == meaning_of(name, b);
  };
  CHECK(same("NCCL_ALGO", "ring", "Ring"));
  CHECK(same("NCCL_ALGO", "Ring,Tree", "TREE,RING"));
  CHECK(same("NCCL_ALGO", "allreduce:ring", "AllReduce:Ring"));
  CHECK_FALSE(same("NCCL_ALGO", "Ring", "Tree"));
  CHECK_FALSE(same("NCCL_ALGO", "Ring", "^Ring"));
  CHECK_FALSE(same("NCCL_ALGO", "Ring", ""));
  CHECK_FALSE(same("NCCL_ALGO", "Ring, Tree", "Ring,Tree"));  // NCCL refuses " Tree"
  CHECK(same("NCCL_PROTO", "ll128", "LL128"));
  CHECK(same("NCCL_PROTO", "^LL128", "LL,Simple"));
  CHECK(same("NCCL_BUFFSIZE", "4194304", ""));
  CHECK(same("NCCL_BUFFSIZE", "0x100000", "1048576"));
  CHECK_FALSE(same("NCCL_BUFFSIZE", "1048576", ""));
  CHECK(same("NCCL_NET", "SOCKET", "Socket"));
  CHECK_FALSE(same("NCCL_IB_HCA", "MLX5_0", "mlx5_0"));
  // No distance: NCCL keeps its default.
  CHECK_FALSE(same("NCCL_P2P_LEVEL", "NVL", "nvl"));
  CHECK_FALSE(same("NCCL_NET_GDR_LEVEL", "PXB", "pxb"));
  CHECK_FALSE(same("NCCL_MIN_NCHANNELS", "4", ""));
  CHECK_FALSE(same("MY_VARIABLE", "a", "A"));
}

}  // namespace rehearse::sim::reading_test
