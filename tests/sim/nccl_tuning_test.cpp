// SPDX-License-Identifier: Apache-2.0
// Rules of the cost table that no golden vector decides.
#include "tests/sim/nccl_fixture.hpp"

namespace rehearse::nccl_tuning_test {
using namespace rehearse;
using namespace rehearse::sim;
using namespace rehearse::sim::testing;

namespace {

constexpr auto kAr = Function::kAllReduce;
constexpr auto kAg = Function::kAllGather;
constexpr auto kSimple = Protocol::kSimple;

// Bandwidth of a graph so fast that only the caps of the constants count.
float capped(int nodes, int cc, Algorithm algorithm, Protocol protocol) {
  CommShape shape = nodes_of(nodes, 2, cc);
  shape.ring = shape.tree = graph(4, 5000, 5000);
  shape.nvls = graph(4, 5000, 5000);
  return cost(model_of(shape), kAr, algorithm, protocol).bandwidth_gbps;
}

// AllReduce algorithm bandwidth of the ring over its bus bandwidth, two ranks per node.
double ring_ratio(int nodes) { return 2.0 * nodes / (2 * (2.0 * nodes - 1)); }

}  // namespace

TEST_CASE("bandwidth caps follow the GPU and the number of nodes", "[nccl][tuning]") {
  struct Row {
    int cc;
    double ring_ll128[3], tree_ll128[3], tree[3];
  };
  const Row rows[] = {
      {70, {20, 20, 20}, {20, 20, 20}, {26.5, 18.5, 10}},
      {80, {20, 20, 20}, {20, 20, 20}, {24, 23.6, 17.8}},
      {90, {36.7, 36.7, 36.7}, {36.7, 36.7, 29}, {38.7, 41.4, 36}},
      {100, {73.4, 34.6, 73.4}, {55.6, 31.67, 20}, {70, 42.8, 24}},
  };
  const int nodes[] = {1, 2, 4};
  for (const Row& row : rows) {
    for (int i = 0; i < 3; ++i) {
      INFO("cc " << row.cc << ", " << nodes[i] << " nodes");
      CHECK(capped(nodes[i], row.cc, Algorithm::kRing, Protocol::kLl128) ==
            Approx(4 * row.ring_ll128[i] * ring_ratio(nodes[i])));
      CHECK(capped(nodes[i], row.cc, Algorithm::kTree, kSimple) == Approx(4 * row.tree[i] * .5));
      const double ll128 =
          std::min(row.tree[i] * (i == 0 ? 7.0 / 9 : 120.0 / 128), row.tree_ll128[i]);
      CHECK(capped(nodes[i], row.cc, Algorithm::kTree, Protocol::kLl128) == Approx(4 * ll128 * .5));
    }
  }
}

TEST_CASE("the constants of 2.28.9 hold also where nothing reads them", "[nccl][tuning]") {
  const Constants c = constants_for({2, 28, 9}).constants;
  using Row = std::array<double, 3>;
  CHECK(c.ll_max[index_of(Arch::kHopper)] == Row{141, 45, 35});
  CHECK(c.ll_max[index_of(Arch::kBlackwell)] == Row{282, 90, 70});
  CHECK(c.nvls_tree_per_channel[index_of(Arch::kVolta)] == Row{26.5, 18.5, 10});
  CHECK(c.nvls_tree_per_channel[index_of(Arch::kAmpere)] == Row{24, 23.6, 17.8});
  CHECK(c.nvls_tree_per_channel[index_of(Arch::kHopper)] == Row{0, 57.7, 45.5});
  CHECK(c.nvls_tree_per_channel[index_of(Arch::kBlackwell)] == Row{0, 96, 43.8});
}

TEST_CASE("NVLS_TREE is capped per channel", "[nccl][tuning]") {
  CHECK(capped(2, 90, Algorithm::kNvlsTree, kSimple) == Approx(4 * 57.7 * ring_ratio(2)));
  CHECK(capped(4, 90, Algorithm::kNvlsTree, kSimple) == Approx(4 * 45.5 * ring_ratio(4)));
  CHECK(capped(2, 100, Algorithm::kNvlsTree, kSimple) == Approx(4 * 96.0 * ring_ratio(2)));
}

TEST_CASE("LL between nodes is limited by the CPU vendor, not by the GPU", "[nccl][tuning]") {
  CommShape shape = nodes_of(2, 2, 90);
  shape.ring = graph(4, 5000, 5000);
  const auto ll = [&](CpuVendor vendor) {
    shape.cpu_vendor = vendor;
    const double ratio = ring_ratio(2);
    return cost(model_of(shape), kAr, Algorithm::kRing, Protocol::kLl).bandwidth_gbps / ratio;
  };
  CHECK(ll(CpuVendor::kIntel) == Approx(39.0));
  CHECK(ll(CpuVendor::kZhaoxin) == Approx(39.0));
  CHECK(ll(CpuVendor::kAmd) == Approx(22.5));
  CHECK(ll(CpuVendor::kMixed) == Approx(22.5));
}

TEST_CASE("the slowest GPU of a mixed communicator decides the row", "[nccl][tuning]") {
  CommShape shape = nodes_of(1, 2, 80);
  shape.ring = shape.tree = graph(4, 5000, 5000);
  shape.cc_max = 90;
  const NcclModel mixed = model_of(shape);
  CHECK(cost(mixed, kAr, Algorithm::kTree, kSimple).bandwidth_gbps == Approx(4 * 24.0 * .5));

  CommShape collnet = with_collnet(nodes_of(2, 8, 80));
  collnet.cc_max = 90;
  const float full =
      cost(model_of(collnet), kAr, Algorithm::kCollnetDirect, kSimple).bandwidth_gbps;
  collnet.cc_min = 90;
  const float hopper =
      cost(model_of(collnet), kAr, Algorithm::kCollnetDirect, kSimple).bandwidth_gbps;
  CHECK(hopper == Approx(.85 * full));
}

TEST_CASE("LL128 needs one kind of GPU from Volta on", "[nccl][tuning]") {
  const auto has_ll128 = [](const CommShape& shape, const Environment& env = {},
                            NcclVersion version = {2, 28, 9}) {
    return cost(model_of(shape, env, version), kAr, Algorithm::kRing, Protocol::kLl128).available();
  };
  CHECK(has_ll128(nodes_of(1, 8, 70)));
  CHECK(!has_ll128(nodes_of(1, 8, 61)));
  CommShape mixed = nodes_of(1, 8, 90);
  mixed.cc_max = 100;
  CHECK(!has_ll128(mixed));
  CHECK(has_ll128(mixed, {}, {2, 30, 0}));
  CHECK(has_ll128(mixed, {{"NCCL_PROTO", "LL128"}}));

  CommShape pair = nodes_of(1, 2, 90);
  pair.built_with_cuda_11_8 = true;
  CHECK(!has_ll128(pair));
  CHECK(has_ll128(nodes_of(1, 2, 90)));

  CommShape pxn = nodes_of(2, 8, 90);
  pxn.ring.type_inter = PathType::kPxn;
  CHECK(has_ll128(pxn));
  CHECK(!has_ll128(pxn, {{"NCCL_LL128_C2C", "0"}}));
  pxn.cc_min = pxn.cc_max = 80;
  CHECK(!has_ll128(pxn));
}

TEST_CASE("PAT needs one rank per node and a GPU from Pascal on", "[nccl][tuning]") {
  const auto has_pat = [](const CommShape& shape, const Environment& env = {}) {
    return cost(model_of(shape, env), kAg, Algorithm::kPat, kSimple).available();
  };
  CHECK(has_pat(nodes_of(4, 1, 60)));
  CHECK(!has_pat(nodes_of(4, 1, 52)));
  CHECK(!has_pat(nodes_of(4, 2, 80)));
  CHECK(has_pat(nodes_of(4, 2, 80), {{"NCCL_PAT_ENABLE", "1"}}));
  CHECK(!has_pat(nodes_of(4, 1, 80), {{"NCCL_PAT_ENABLE", "0"}}));
  CHECK(!has_pat(nodes_of(4, 1, 52), {{"NCCL_PAT_ENABLE", "1"}}));
  CommShape offloaded = nodes_of(4, 1, 80);
  offloaded.host_network = false;
  CHECK(!has_pat(offloaded));
}

TEST_CASE("gathers between nodes need a head for every rank", "[nccl][tuning]") {
  const auto has = [](const CommShape& shape, Function f, Algorithm a) {
    return cost(model_of(shape), f, a, kSimple).available();
  };
  CommShape shape = with_collnet(nodes_of(2, 8));
  CHECK(has(shape, kAg, Algorithm::kNvls));
  CHECK(has(shape, kAg, Algorithm::kCollnetDirect));
  shape.nvls_heads = 4;  // NVLS counts its own heads
  CHECK(!has(shape, kAg, Algorithm::kNvls));
  CHECK(has(shape, kAr, Algorithm::kNvls));
  CHECK(has(shape, kAg, Algorithm::kCollnetDirect));
  shape.nvls_heads = 8;
  shape.collnet_heads = 4;
  CHECK(has(shape, kAg, Algorithm::kNvls));
  CHECK(!has(shape, kAg, Algorithm::kCollnetDirect));
  shape.collnet_heads = 8;
  shape.collnet_allgather = false;
  CHECK(!has(shape, kAg, Algorithm::kNvls));
  CHECK(has(shape, Function::kReduceScatter, Algorithm::kNvls));
  shape.nvswitch = false;
  CHECK(!has(shape, kAr, Algorithm::kCollnetDirect));
  CHECK(has(shape, kAr, Algorithm::kCollnetChain));
}

TEST_CASE("posting to the network costs twice on x86 hosts of AMD only", "[nccl][tuning]") {
  CommShape shape = nodes_of(2, 8, 90);
  const auto latency = [&](CpuArch arch, CpuVendor vendor, const Environment& env = {}) {
    shape.cpu_arch = arch;
    shape.cpu_vendor = vendor;
    return cost(model_of(shape, env), kAg, Algorithm::kRing, kSimple).latency_us;
  };
  // 8.4 + 14 hops inside + one between nodes; NVLink needs 3.4 µs, a post 3 µs or 6 µs.
  CHECK(latency(CpuArch::kX86, CpuVendor::kIntel) == Approx(8.4 + 14 * 3.4 + 14));
  CHECK(latency(CpuArch::kX86, CpuVendor::kAmd) == Approx(8.4 + 14 * 6.0 + 14));
  CHECK(latency(CpuArch::kArm, CpuVendor::kAmd) == Approx(8.4 + 14 * 3.4 + 14));
  const Environment slow = {{"NCCL_NET_OVERHEAD", "5000"}};
  CHECK(latency(CpuArch::kX86, CpuVendor::kIntel, slow) == Approx(8.4 + 14 * 15.0 + 14));
}

TEST_CASE("on POWER the tree is priced as the ring over PCI", "[nccl][tuning]") {
  CommShape shape = nodes_of(1, 4, 70);
  shape.tree.type_intra = PathType::kSys;
  CHECK(cost(model_of(shape), kAr, Algorithm::kTree, kSimple).latency_us == Approx(8.4 + 6 * 4.0));
  shape.cpu_arch = CpuArch::kPower;
  CHECK(cost(model_of(shape), kAr, Algorithm::kTree, kSimple).latency_us == Approx(8.4 + 6 * 5.7));
}

TEST_CASE("one rank has no cost table", "[nccl][tuning]") {
  const NcclModel model = model_of(nodes_of(1, 1));
  CHECK(all_variants().size() == 5 * 7 * 3);
  for (const Variant& variant : all_variants()) CHECK(!model.table.at(variant).available());
}

TEST_CASE("shapes NCCL cannot have are refused", "[nccl][tuning]") {
  const auto refused = [](auto spoil) {
    CommShape shape = nodes_of(2, 8);
    spoil(shape);
    const auto model = make_nccl_model(shape, Settings{}, {2, 28, 9});
    return !model && model.error().code == Code::kBadInput && !model.error().what.empty();
  };
  CHECK(refused([](CommShape& s) { s.n_ranks = 0; }));
  CHECK(refused([](CommShape& s) { s.n_nodes = 17; }));
  CHECK(refused([](CommShape& s) { s.n_channels = 65; }));
  CHECK(refused([](CommShape& s) { s.cc_max = 80; }));
  CHECK(refused([](CommShape& s) { s.ring.bw_intra = -1; }));
  CHECK(refused([](CommShape& s) { s.tree.latency_inter_us = 1.0 / 0.0; }));
  CHECK(refused([](CommShape& s) { s.nvls.n_channels = -3; }));
}

}  // namespace rehearse::nccl_tuning_test
