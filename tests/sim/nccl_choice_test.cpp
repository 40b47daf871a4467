// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/nccl_fixture.hpp"

namespace rehearse::nccl_choice_test {
using namespace rehearse;
using namespace rehearse::sim;
using namespace rehearse::sim::testing;

namespace {

constexpr auto kAr = Function::kAllReduce;
constexpr auto kAg = Function::kAllGather;
constexpr auto kRs = Function::kReduceScatter;
constexpr auto kSimple = Protocol::kSimple;

bool can_use(const NcclModel& model, const Call& call, Algorithm algorithm) {
  const auto costs = cost_table(model, call);
  REQUIRE(costs.has_value());
  return (*costs)[index_of(algorithm)][index_of(kSimple)] >= 0;
}

float time_of(const NcclModel& model, std::int64_t bytes, Algorithm a, Protocol p) {
  return predicted_time_us(model, call_of(kAr, bytes, DataType::kInt8), a, p);
}

}  // namespace

TEST_CASE("a tree AllReduce below 64 bytes or from 512 MiB on is not corrected", "[nccl][choice]") {
  const NcclModel model = model_of(nodes_of(2, 8));
  const Cost c = cost(model, kAr, Algorithm::kTree, kSimple);
  const auto plain = [&](double bytes) { return c.latency_us + bytes / (1000 * c.bandwidth_gbps); };
  const auto corrected = [&](double bytes, double factor) {
    return c.latency_us + bytes / (1000 * c.bandwidth_gbps * factor);
  };
  CHECK(time_of(model, 63, Algorithm::kTree, kSimple) == Approx(plain(63)));
  CHECK(time_of(model, 64, Algorithm::kTree, kSimple) == Approx(corrected(64, .9)));
  const std::int64_t half_gib = std::int64_t{1} << 29;
  CHECK(time_of(model, half_gib - 1, Algorithm::kTree, kSimple) ==
        Approx(corrected(static_cast<double>(half_gib), .9)));
  CHECK(time_of(model, half_gib, Algorithm::kTree, kSimple) ==
        Approx(plain(static_cast<double>(half_gib))));
}

TEST_CASE("a ring AllReduce between nodes pays more latency from 64 bytes per part on",
          "[nccl][choice]") {
  const auto factor = [](int cc, std::int64_t bytes) {
    const NcclModel model = model_of(nodes_of(2, 8, cc));
    const Cost c = cost(model, kAr, Algorithm::kRing, kSimple);
    const double moving = static_cast<double>(bytes) / (1000 * c.bandwidth_gbps);
    return (time_of(model, bytes, Algorithm::kRing, kSimple) - moving) / c.latency_us;
  };
  const std::int64_t edge = 64 * 16 * 16;  // 16 channels, 16 ranks
  CHECK(factor(90, edge - 1) == Approx(1.0));
  CHECK(factor(90, edge) == Approx(1.4));
  CHECK(factor(80, edge) == Approx(1.4));
  CHECK(factor(70, edge) == Approx(1.9));
  const NcclModel one_node = model_of(nodes_of(1, 8));
  const Cost c = cost(one_node, kAr, Algorithm::kRing, kSimple);
  CHECK(time_of(one_node, 1 << 20, Algorithm::kRing, kSimple) ==
        Approx(c.latency_us + (1 << 20) / (1000 * c.bandwidth_gbps)));
}

TEST_CASE("calls that share a channel pay latency per ring call but per ten tree calls",
          "[nccl][choice]") {
  const NcclModel model = model_of(nodes_of(1, 8));
  Call call = call_of(kAr, 0);
  const auto latencies = [&](Algorithm a, int pipe_ops) {
    call.pipe_ops = pipe_ops;
    return predicted_time_us(model, call, a, kSimple) / cost(model, kAr, a, kSimple).latency_us;
  };
  CHECK(latencies(Algorithm::kRing, 11) == Approx(11));
  CHECK(latencies(Algorithm::kTree, 10) == Approx(1));
  CHECK(latencies(Algorithm::kTree, 11) == Approx(2));
  CHECK(latencies(Algorithm::kNvls, 30) == Approx(3));
}

TEST_CASE("one rank runs RING SIMPLE in no time", "[nccl][choice]") {
  const NcclModel model = model_of(nodes_of(1, 1));
  for (const Function f : kCollectives) {
    const Choice choice = choice_of(model, call_of(f, 1 << 20));
    CHECK(choice.algorithm == Algorithm::kRing);
    CHECK(choice.protocol == kSimple);
    CHECK(choice.time_us == 0);
  }
  const PlannedCall plan = plan_of(model, call_of(kAr, 1 << 20));
  CHECK(plan.lo.proxy_steps == 0);
  CHECK(plan.split.count_lo > 0);
}

TEST_CASE("CollNet serves up to 8 local ranks", "[nccl][choice]") {
  const Call call = call_of(kAr, 1 << 20);
  for (const Algorithm a : {Algorithm::kCollnetDirect, Algorithm::kCollnetChain}) {
    CHECK(can_use(model_of(with_collnet(nodes_of(2, 8))), call, a));
    CHECK(!can_use(model_of(with_collnet(nodes_of(2, 9))), call, a));
    CHECK(!can_use(model_of(nodes_of(2, 8)), call, a));
  }
}

TEST_CASE("NVLS gathers serve up to 32 local ranks, AllReduce more", "[nccl][choice]") {
  const NcclModel fits = model_of(nodes_of(1, 32));
  const NcclModel large = model_of(nodes_of(1, 33));
  CHECK(can_use(fits, call_of(kAg, 1 << 20), Algorithm::kNvls));
  CHECK(!can_use(large, call_of(kAg, 1 << 20), Algorithm::kNvls));
  CHECK(!can_use(large, call_of(kRs, 1 << 20), Algorithm::kNvls));
  CHECK(can_use(large, call_of(kAr, 1 << 20), Algorithm::kNvls));
}

TEST_CASE("a usable nvls graph is not used without NVLS support", "[nccl][choice]") {
  CommShape shape = nodes_of(1, 8);
  shape.nvls_support = false;
  const NcclModel model = model_of(shape);
  CHECK(cost(model, kAr, Algorithm::kNvls, kSimple).available());
  CHECK(!can_use(model, call_of(kAr, 1 << 20), Algorithm::kNvls));
  CHECK(!can_use(model_of(nodes_of(2, 8)), call_of(kAr, 1 << 20), Algorithm::kNvls));
  CHECK(can_use(model_of(nodes_of(2, 8)), call_of(kAr, 1 << 20), Algorithm::kNvlsTree));
}

TEST_CASE("NVLS reduces only what the switch can reduce", "[nccl][choice]") {
  const NcclModel model = model_of(nodes_of(1, 8));
  const auto reduces = [&](DataType type, ReduceOp op) {
    return can_use(model, call_of(kAr, 1 << 20, type, op), Algorithm::kNvls);
  };
  for (const DataType type : {DataType::kInt32, DataType::kUint32, DataType::kInt64,
                              DataType::kUint64, DataType::kFloat16, DataType::kBfloat16}) {
    CHECK(reduces(type, ReduceOp::kSum));
    CHECK(reduces(type, ReduceOp::kMin));
    CHECK(reduces(type, ReduceOp::kMax));
    CHECK(!reduces(type, ReduceOp::kProd));
    CHECK(!reduces(type, ReduceOp::kAvg));
  }
  for (const DataType type : {DataType::kFloat32, DataType::kFloat64}) {
    CHECK(reduces(type, ReduceOp::kSum));
    CHECK(!reduces(type, ReduceOp::kMax));
  }
  CHECK(!reduces(DataType::kInt8, ReduceOp::kSum));
  CHECK(!reduces(DataType::kFloat8e4m3, ReduceOp::kSum));
  CHECK(can_use(model, call_of(kAg, 1 << 20, DataType::kInt8), Algorithm::kNvls));
}

TEST_CASE("PAT does not scale in a ReduceScatter", "[nccl][choice]") {
  const NcclModel model = model_of(nodes_of(8, 1, 80));
  const auto uses = [&](Function f, DataType type, ReduceOp op) {
    return can_use(model, call_of(f, 1 << 10, type, op), Algorithm::kPat);
  };
  CHECK(uses(kRs, DataType::kFloat32, ReduceOp::kSum));
  CHECK(!uses(kRs, DataType::kFloat32, ReduceOp::kAvg));
  CHECK(!uses(kRs, DataType::kInt32, ReduceOp::kAvg));
  CHECK(!uses(kRs, DataType::kFloat32, ReduceOp::kPreMulSum));
  CHECK(uses(kAg, DataType::kFloat32, ReduceOp::kAvg));
}

TEST_CASE("float8 reductions avoid rings of more than 8 ranks", "[nccl][choice]") {
  const NcclModel nine = model_of(nodes_of(1, 9, 80));
  const Call call = call_of(kAr, 1 << 26, DataType::kFloat8e5m2);
  CHECK(choice_of(nine, call_of(kAr, 1 << 26, DataType::kInt8)).algorithm == Algorithm::kRing);
  CHECK(choice_of(nine, call).algorithm == Algorithm::kTree);
  CHECK(choice_of(model_of(nodes_of(1, 8, 80)), call).algorithm == Algorithm::kRing);
  // A gather moves bytes and loses nothing.
  const Call gather = call_of(kAg, 1 << 20, DataType::kFloat8e5m2);
  CHECK(choice_of(nine, gather).time_us ==
        choice_of(nine, call_of(kAg, 1 << 20, DataType::kInt8)).time_us);
}

TEST_CASE("types matter only by their size where nothing is reduced", "[nccl][choice]") {
  const NcclModel model = model_of(nodes_of(2, 8));
  const Choice bytes = choice_of(model, call_of(kAg, 1 << 20, DataType::kInt8));
  const Choice words = choice_of(model, call_of(kAg, 1 << 17, DataType::kInt64));
  CHECK(bytes.algorithm == words.algorithm);
  CHECK(bytes.time_us == words.time_us);
  CHECK(bytes.max_channels == words.max_channels);
}

TEST_CASE("among equal times the first algorithm and protocol win", "[nccl][choice]") {
  const NcclModel model = model_of(nodes_of(1, 8));
  const Call call = call_of(kAr, 1 << 20);
  CostTable costs;
  for (auto& row : costs) row.fill(-1);
  costs[index_of(Algorithm::kNvls)][index_of(kSimple)] = 5;
  costs[index_of(Algorithm::kRing)][index_of(kSimple)] = 5;
  costs[index_of(Algorithm::kRing)][index_of(Protocol::kLl128)] = 5;
  const auto choice = choose_tuned(model, call, costs, std::nullopt);
  REQUIRE(choice.has_value());
  CHECK(choice->algorithm == Algorithm::kRing);
  CHECK(choice->protocol == Protocol::kLl128);
  CHECK(choice->max_channels == 16);
  CHECK(choose_tuned(model, call, costs, 3)->max_channels == 3);
  CHECK(choose_tuned(model, call, costs, 1)->max_channels == 1);
  CHECK(choose_tuned(model, call, costs, 0)->max_channels == 16);
}

TEST_CASE("a table with nothing in it is an error that names the settings", "[nccl][choice]") {
  const NcclModel model = model_of(nodes_of(1, 8), {{"NCCL_ALGO", "Tree"}});
  const auto choice = choose(model, call_of(kAg, 1 << 20));
  REQUIRE(!choice.has_value());
  CHECK(choice.error().code == Code::kBadInput);
  CHECK(choice.error().fix.find("NCCL_ALGO") != std::string::npos);
  CHECK(choice_of(model, call_of(kAr, 1 << 20)).algorithm == Algorithm::kTree);
}

TEST_CASE("calls that cannot be are refused", "[nccl][choice]") {
  const NcclModel model = model_of(nodes_of(1, 8));
  CHECK(!choose(model, call_of(Function::kSend, 1)));
  CHECK(!choose(model, call_of(kAr, -1)));
  CHECK(!choose(model, call_of(kAr, std::int64_t{1} << 62)));
  Call call = call_of(kAr, 1);
  call.pipe_ops = 0;
  CHECK(!choose(model, call));
}

TEST_CASE("the efficiency policy turns registered gathers to NVLS", "[nccl][choice]") {
  CommShape shape = nodes_of(1, 8);
  shape.nvls = graph(8, 20, 20);
  shape.nvls_registered_channels = 4;
  Call call = call_of(kAg, 1 << 24);
  call.nvls_registered = true;
  const Environment policy = {{"NCCL_CTA_POLICY", "1"}};
  const Choice few = choice_of(model_of(shape, policy), call);
  CHECK(few.algorithm == Algorithm::kNvls);
  CHECK(few.max_channels == 4);
  CHECK(few.n_threads == 640);
  CHECK(choice_of(model_of(shape), call).algorithm == Algorithm::kRing);
  const Environment forced = {{"NCCL_CTA_POLICY", "1"}, {"NCCL_PROTO", "Simple"}};
  CHECK(choice_of(model_of(shape, forced), call).algorithm == Algorithm::kRing);
}

}  // namespace rehearse::nccl_choice_test
