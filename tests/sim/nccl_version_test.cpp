// SPDX-License-Identifier: Apache-2.0
#include "sim/nccl/version.hpp"
#include "tests/sim/nccl_fixture.hpp"

namespace rehearse::nccl_version_test {
using namespace rehearse;
using namespace rehearse::sim;
using namespace rehearse::sim::testing;

namespace {

constexpr auto kAr = Function::kAllReduce;
constexpr auto kAg = Function::kAllGather;
constexpr auto kSimple = Protocol::kSimple;

VersionedConstants of(int minor, int patch) { return constants_for({2, minor, patch}); }

Cost cost_in(NcclVersion version, const CommShape& shape, Function f, Algorithm a,
             Protocol p = kSimple) {
  return cost(model_of(shape, {}, version), f, a, p);
}

}  // namespace

TEST_CASE("versions are read as logs and headers print them", "[nccl][version]") {
  CHECK(*parse_nccl_version("2.28.9") == NcclVersion{2, 28, 9});
  CHECK(*parse_nccl_version("2.19") == NcclVersion{2, 19, 0});
  CHECK(*parse_nccl_version("2.29.2+cuda13.1") == NcclVersion{2, 29, 2});
  CHECK(*parse_nccl_version("22902") == NcclVersion{2, 29, 2});
  CHECK(*parse_nccl_version("2708") == NcclVersion{2, 7, 8});
  CHECK(to_string(NcclVersion{2, 28, 9}) == "2.28.9");
  for (const char* bad : {"", "2", "two", "2.x", "2.28.9.1", "2..9", "-2.28", "2.28.", "2.100.1"}) {
    INFO(bad);
    const auto version = parse_nccl_version(bad);
    CHECK((!version && version.error().code == Code::kBadInput));
  }
}

TEST_CASE("known versions are exact and unknown ones take the nearest known", "[nccl][version]") {
  for (const auto& [minor, patch] : {std::pair{12, 12},
                                     {18, 3},
                                     {19, 4},
                                     {21, 5},
                                     {23, 4},
                                     {25, 1},
                                     {26, 2},
                                     {27, 7},
                                     {28, 3},
                                     {28, 9},
                                     {29, 2},
                                     {29, 7},
                                     {30, 7}}) {
    INFO("2." << minor << "." << patch);
    CHECK(of(minor, patch).exact);
  }
  const auto nearest = [](int minor, int patch) {
    const VersionedConstants v = of(minor, patch);
    CHECK(!v.exact);
    CHECK(v.asked == NcclVersion{2, minor, patch});
    return v.label;
  };
  CHECK(nearest(7, 8) == "2.12-2.14");
  CHECK(nearest(22, 3) == "2.19-2.21");
  CHECK(nearest(28, 0) == "2.28.3");
  CHECK(nearest(28, 7) == "2.28.9");
  CHECK(nearest(28, 12) == "2.28.9");
  CHECK(nearest(29, 1) == "2.29.2");
  CHECK(nearest(29, 6) == "2.29.7");
  CHECK(nearest(31, 0) == "2.30");
}

TEST_CASE("tree latency changed in 2.19 and in 2.23", "[nccl][version]") {
  CommShape shape = nodes_of(1, 3, 80);
  const auto latency = [&](int minor) {
    return cost_in({2, minor, 0}, shape, kAr, Algorithm::kTree).latency_us;
  };
  CHECK(latency(18) == Approx(2 * 2 * 4.0));
  CHECK(latency(20) == Approx(2 * 2 * 28.0));
  CHECK(latency(23) == Approx(8.4 + 2 * 2 * 4.0));
  shape.tree.type_intra = PathType::kPix;
  CHECK(latency(18) == Approx(2 * 2 * 6.0));
}

TEST_CASE("PAT came with 2.23", "[nccl][version]") {
  const CommShape shape = nodes_of(4, 1, 80);
  CHECK(!cost_in({2, 21, 5}, shape, kAg, Algorithm::kPat).available());
  CHECK(cost_in({2, 23, 4}, shape, kAg, Algorithm::kPat).available());
}

TEST_CASE("ring LL128 of lone ranks kept less up to 2.21", "[nccl][version]") {
  const auto bandwidth = [](NcclVersion v, int ranks_per_node) {
    CommShape shape = nodes_of(2, ranks_per_node, 80);
    shape.ring = shape.tree = graph(8, 10, 10);
    return cost_in(v, shape, Function::kBroadcast, Algorithm::kRing, Protocol::kLl128)
        .bandwidth_gbps;
  };
  CHECK(bandwidth({2, 20, 5}, 1) == Approx(80 * .7));
  CHECK(bandwidth({2, 20, 5}, 2) == Approx(80 * .92));
  CHECK(bandwidth({2, 28, 9}, 1) == Approx(80 * .92));
}

TEST_CASE("NVLS bandwidth followed the graph before 2.28", "[nccl][version]") {
  CommShape shape = nodes_of(1, 8);
  shape.nvls = graph(8, 40, 30);
  CHECK(cost_in({2, 20, 0}, shape, kAr, Algorithm::kNvls).bandwidth_gbps ==
        Approx(8 * 30 * 5.0 / 6));
  CHECK(cost_in({2, 20, 0}, shape, kAg, Algorithm::kNvls).bandwidth_gbps == Approx(8 * 30));
  CHECK(cost_in({2, 27, 7}, shape, kAg, Algorithm::kNvls).bandwidth_gbps == Approx(8 * 27));
  CHECK(cost_in({2, 28, 9}, shape, kAr, Algorithm::kNvls).bandwidth_gbps ==
        Approx(8 * 30 * 8.0 / 14));
  CommShape nodes = nodes_of(4, 8);
  nodes.nvls = graph(8, 40, 30);
  CHECK(cost_in({2, 20, 0}, nodes, kAr, Algorithm::kNvlsTree).bandwidth_gbps ==
        Approx(8 * 15 * 5.0 / 6));
  CHECK(cost_in({2, 27, 0}, nodes, kAr, Algorithm::kNvlsTree).latency_us == Approx(25 + 4 * 14.0));
  CHECK(cost_in({2, 28, 9}, nodes, kAr, Algorithm::kNvlsTree).latency_us == Approx(25 + 4 * 20.9));
}

TEST_CASE("CollNetDirect gathers lost bandwidth with ranks up to 2.25", "[nccl][version]") {
  const auto bandwidth = [](NcclVersion v, int ranks_per_node) {
    const CommShape shape = with_collnet(nodes_of(2, ranks_per_node));
    return cost_in(v, shape, kAg, Algorithm::kCollnetDirect).bandwidth_gbps;
  };
  CHECK(bandwidth({2, 21, 5}, 1) == Approx(20 * .95));
  CHECK(bandwidth({2, 21, 5}, 8) == Approx(160 * .85));
  CHECK(bandwidth({2, 27, 0}, 8) == Approx(160 * .9));
}

TEST_CASE("Blackwell was twice Hopper before it was measured", "[nccl][version]") {
  const auto ring_ll128 = [](int minor, int patch) {
    return of(minor, patch).constants.ring_ll128_per_channel[index_of(Arch::kBlackwell)];
  };
  using Row = std::array<double, 3>;
  CHECK(ring_ll128(27, 0) == Row{73.4, 73.4, 73.4});
  CHECK(of(26, 0).constants.tree_per_channel[index_of(Arch::kBlackwell)] == Row{77.4, 82.8, 72});
  CHECK(ring_ll128(28, 9) == Row{73.4, 34.6, 73.4});
  CHECK(ring_ll128(29, 2) == Row{34.5, 34.6, 34.5});
  CHECK(ring_ll128(29, 7) == Row{40, 40, 40});
  CHECK(of(30, 0).constants.nvls_tree_per_channel[index_of(Arch::kBlackwell)] == Row{0, 96, 80});
}

TEST_CASE("since 2.30 NVLS_TREE is corrected by size on Blackwell and x86", "[nccl][version]") {
  const auto slowdown = [](NcclVersion version, int cc, CpuArch arch, std::int64_t bytes) {
    CommShape shape = nodes_of(2, 8, cc);
    shape.cpu_arch = arch;
    const NcclModel model = model_of(shape, {}, version);
    const Cost c = cost(model, kAr, Algorithm::kNvlsTree, kSimple);
    const float time = predicted_time_us(model, call_of(kAr, bytes, DataType::kInt8),
                                         Algorithm::kNvlsTree, kSimple);
    return (time - c.latency_us) * 1000 * c.bandwidth_gbps / static_cast<float>(bytes);
  };
  const std::int64_t half_gib = std::int64_t{1} << 29;
  CHECK(slowdown({2, 30, 0}, 100, CpuArch::kX86, half_gib) == Approx(1 / .9).epsilon(1e-3));
  CHECK(slowdown({2, 30, 0}, 100, CpuArch::kX86, 2 * half_gib) == Approx(1).epsilon(1e-3));
  CHECK(slowdown({2, 30, 0}, 100, CpuArch::kArm, half_gib) == Approx(1).epsilon(1e-3));
  CHECK(slowdown({2, 30, 0}, 90, CpuArch::kX86, half_gib) == Approx(1).epsilon(1e-3));
  CHECK(slowdown({2, 29, 7}, 100, CpuArch::kX86, half_gib) == Approx(1).epsilon(1e-3));
}

TEST_CASE("ring figures of 2.21 and older follow the source of that time", "[nccl][version]") {
  const NcclVersion old = {2, 20, 5};
  CommShape shape = nodes_of(2, 4, 80);
  shape.ring = graph(1, 20, 20);
  CHECK(cost_in(old, shape, Function::kBroadcast, Algorithm::kRing, Protocol::kLl).bandwidth_gbps ==
        Approx(5));
  // 8 ranks on 2 nodes: 14 steps, 4 of them between nodes instead of 2.
  CHECK(cost_in(old, shape, kAr, Algorithm::kRing).latency_us == Approx(8.4 + 10 * 3.4 + 4 * 14));
  CHECK(cost_in({2, 28, 9}, shape, kAr, Algorithm::kRing).latency_us ==
        Approx(8.4 + 12 * 3.4 + 2 * 14));
}

TEST_CASE("up to 2.23 Ring stands in for what NCCL_ALGO does not serve", "[nccl][version]") {
  const CommShape shape = nodes_of(1, 8, 80);
  const Call gather = call_of(Function::kAllGather, 1 << 20);
  for (const NcclVersion version : {NcclVersion{2, 12, 0}, {2, 21, 5}, {2, 23, 4}}) {
    const NcclModel model = model_of(shape, {{"NCCL_ALGO", "Tree"}}, version);
    CHECK(choice_of(model, gather).algorithm == Algorithm::kRing);
    // Where the list serves a function, it is kept to.
    CHECK(choice_of(model, call_of(Function::kAllReduce, 1 << 26)).algorithm == Algorithm::kTree);
  }
  CHECK_FALSE(choose(model_of(shape, {{"NCCL_ALGO", "Tree"}}, {2, 24, 3}), gather));
  CHECK_FALSE(choose(model_of(shape, {{"NCCL_ALGO", "NVLS"}}, {2, 28, 9}),
                     call_of(Function::kAllReduce, 1 << 20)));
}

}  // namespace rehearse::nccl_version_test
