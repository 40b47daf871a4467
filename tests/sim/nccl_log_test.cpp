// SPDX-License-Identifier: Apache-2.0
// Cost tables and choices that NCCL 2.29.2 printed on NVSwitch nodes of H100 (public logs of
// nccl-collectives-bench, MIT): the model against a real run instead of a harness.
#include "tests/sim/nccl_fixture.hpp"

namespace rehearse::nccl_log_test {
using namespace rehearse::sim;
using namespace rehearse::sim::testing;

namespace {

struct Line {
  Function function;
  Algorithm algorithm;
  Protocol protocol;
  double latency_us;      // printed with one decimal
  double bandwidth_gbps;  // printed with one decimal
};

CommShape h100(int gpus, double tree_bw, double nvls_intra, double nvls_inter) {
  CommShape shape = nodes_of(1, gpus);
  shape.n_channels = 24;
  shape.ring = graph(12, 30, 30);
  shape.tree = graph(12, tree_bw, tree_bw);
  shape.nvls = graph(gpus, nvls_intra, nvls_inter);
  shape.nvls_heads = gpus;
  return shape;
}

void check_lines(const CommShape& shape, std::initializer_list<Line> lines) {
  const NcclModel model = model_of(shape, {}, {2, 29, 2});
  CHECK(model.version.exact);
  for (const Line& line : lines) {
    INFO(name_of(line.function) << " " << name_of(line.algorithm) << " " << name_of(line.protocol));
    const Cost c = cost(model, line.function, line.algorithm, line.protocol);
    CHECK(c.latency_us == Approx(line.latency_us).margin(0.0501));
    CHECK(c.bandwidth_gbps == Approx(line.bandwidth_gbps).margin(0.0501));
  }
}

constexpr auto kAr = Function::kAllReduce;
constexpr auto kAg = Function::kAllGather;
constexpr auto kBc = Function::kBroadcast;
constexpr auto kTree = Algorithm::kTree;
constexpr auto kRing = Algorithm::kRing;
constexpr auto kNvls = Algorithm::kNvls;
constexpr auto kLl = Protocol::kLl;
constexpr auto kLl128 = Protocol::kLl128;
constexpr auto kSimple = Protocol::kSimple;

}  // namespace

TEST_CASE("the tables NCCL 2.29.2 printed on 2, 4 and 6 H100 are reproduced", "[nccl][log]") {
  check_lines(h100(2, 60, 60, 60), {{kAr, kTree, kLl, 8.0, 61.1},
                                    {kAr, kTree, kLl128, 16.5, 180.6},
                                    {kAr, kTree, kSimple, 16.4, 232.2},
                                    {kAr, kRing, kLl, 7.8, 141.0},
                                    {kAr, kRing, kLl128, 17.8, 331.2},
                                    {kAr, kRing, kSimple, 15.2, 360.0},
                                    {kAr, kNvls, kSimple, 25.0, 102.0},
                                    {kAg, kRing, kSimple, 11.8, 720.0},
                                    {kAg, kNvls, kSimple, 25.0, 25.5}});
  check_lines(h100(4, 30, 60, 60), {{kAr, kTree, kLl, 10.4, 43.6},
                                    {kAr, kTree, kLl128, 21.5, 128.8},
                                    {kAr, kTree, kSimple, 32.4, 165.6},
                                    {kAr, kRing, kLl, 10.2, 94.0},
                                    {kAr, kRing, kLl128, 25.4, 220.8},
                                    {kAr, kRing, kSimple, 28.8, 240.0},
                                    {kAr, kNvls, kSimple, 25.0, 160.0},
                                    {kAg, kNvls, kSimple, 25.0, 114.8}});
  check_lines(h100(6, 30, 50, 60), {{kAr, kTree, kLl, 12.8, 43.6},
                                    {kAr, kTree, kSimple, 48.4, 165.6},
                                    {kAr, kRing, kLl, 12.6, 84.6},
                                    {kAr, kRing, kLl128, 33.0, 198.7},
                                    {kAr, kRing, kSimple, 42.4, 216.0},
                                    {kAr, kNvls, kSimple, 25.0, 216.0},
                                    {kAg, kRing, kLl, 9.6, 169.2},
                                    {kAg, kNvls, kSimple, 25.0, 177.1},
                                    {kBc, kRing, kLl, 7.2, 141.0},
                                    {kBc, kRing, kSimple, 11.8, 360.0}});
}

TEST_CASE("the choices NCCL 2.29.2 logged on H100 are reproduced", "[nccl][log]") {
  const NcclModel four = model_of(h100(4, 30, 60, 60), {}, {2, 29, 2});
  const NcclModel six = model_of(h100(6, 30, 50, 60), {}, {2, 29, 2});
  for (std::int64_t bytes = 268435456; bytes <= 8589934592; bytes *= 2) {
    const PlannedCall ring = plan_of(four, call_of(kAr, bytes / 4));
    CHECK(ring.choice.algorithm == kRing);
    CHECK(ring.choice.protocol == kSimple);
    CHECK(ring.split.channel_lo == 0);
    CHECK(ring.split.channel_hi == 23);
    const PlannedCall nvls = plan_of(six, call_of(kAr, bytes / 4));
    CHECK(nvls.choice.algorithm == kNvls);
    CHECK(nvls.split.channel_lo == 0);
    CHECK(nvls.split.channel_hi == 15);
  }
}

TEST_CASE("forcing an algorithm empties the rest of the table as in the log", "[nccl][log]") {
  const NcclModel model = model_of(h100(6, 30, 50, 60), {{"NCCL_ALGO", "NVLS"}}, {2, 29, 2});
  CHECK(cost(model, kAr, kNvls, kSimple).bandwidth_gbps == Approx(216.0).margin(0.05));
  CHECK(!cost(model, kAr, kRing, kSimple).available());
  CHECK(!cost(model, kAr, kTree, kLl).available());
  CHECK(!cost(model, kBc, kRing, kLl).available());
}

}  // namespace rehearse::nccl_log_test
