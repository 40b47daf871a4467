// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/nccl_fixture.hpp"

namespace rehearse::nccl_group_test {
using namespace rehearse::sim;
using namespace rehearse::sim::testing;

namespace {

constexpr auto kAr = Function::kAllReduce;
constexpr auto kAg = Function::kAllGather;

GroupPlan group(const NcclModel& model, const std::vector<Call>& calls) {
  const auto plan = plan_group(model, calls);
  REQUIRE(plan.has_value());
  return *plan;
}

std::vector<std::size_t> order(const GroupPlan& plan) {
  std::vector<std::size_t> calls;
  for (const PlannedCall& planned : plan.calls) calls.push_back(planned.call);
  return calls;
}

}  // namespace

TEST_CASE("a group of one call is that call alone", "[nccl][group]") {
  const NcclModel model = model_of(nodes_of(2, 8));
  for (const Function f : kCollectives) {
    for (const std::int64_t count : {3L, 5000L, 1L << 22}) {
      const Call call = call_of(f, count);
      const PlannedCall alone = plan_of(model, call);
      const GroupPlan plan = group(model, {call});
      REQUIRE(plan.calls.size() == 1);
      CHECK(plan.calls[0].choice.algorithm == alone.choice.algorithm);
      CHECK(plan.calls[0].choice.protocol == alone.choice.protocol);
      CHECK(plan.calls[0].choice.time_us == alone.choice.time_us);
      CHECK(plan.calls[0].split.channel_hi == alone.split.channel_hi);
      CHECK(plan.calls[0].split.count_lo == alone.split.count_lo);
      CHECK(plan.calls[0].lo.chunk_bytes == alone.lo.chunk_bytes);
      CHECK(plan.block_threads >= 128);
    }
  }
}

TEST_CASE("calls of like size are decided as one of their sum", "[nccl][group]") {
  const NcclModel model = model_of(nodes_of(1, 8, 80));
  const std::int64_t small = 1 << 12;
  const std::int64_t large = 8 * small;
  const GroupPlan plan =
      group(model, {call_of(kAr, large), call_of(kAr, small), call_of(kAr, 3 * small)});
  CHECK(order(plan) == std::vector<std::size_t>{1, 2, 0});
  const Choice together = choice_of(model, call_of(kAr, 4 * small));
  CHECK(plan.calls[0].choice.time_us == together.time_us);
  CHECK(plan.calls[1].choice.time_us == together.time_us);
  CHECK(plan.calls[2].choice.time_us == choice_of(model, call_of(kAr, large)).time_us);
}

TEST_CASE("four times the smallest call is decided apart", "[nccl][group]") {
  const NcclModel model = model_of(nodes_of(1, 8, 80));
  const GroupPlan plan = group(model, {call_of(kAr, 4096), call_of(kAr, 4 * 4096)});
  CHECK(plan.calls[0].choice.time_us == choice_of(model, call_of(kAr, 4096)).time_us);
  CHECK(plan.calls[1].choice.time_us == choice_of(model, call_of(kAr, 4 * 4096)).time_us);
}

TEST_CASE("calls of one class of size keep their order", "[nccl][group]") {
  const NcclModel model = model_of(nodes_of(1, 8, 80));
  const GroupPlan plan =
      group(model, {call_of(kAr, 270000), call_of(kAr, 262144), call_of(kAr, 100)});
  CHECK(order(plan) == std::vector<std::size_t>{2, 0, 1});
}

TEST_CASE("reductions and types are binned apart, gathers by their bytes", "[nccl][group]") {
  const NcclModel model = model_of(nodes_of(1, 8, 80));
  const GroupPlan apart = group(model, {call_of(kAr, 4096), call_of(kAr, 4096, DataType::kInt32),
                                        call_of(kAr, 4096, DataType::kFloat32, ReduceOp::kMax)});
  for (const PlannedCall& planned : apart.calls) {
    CHECK(planned.choice.time_us == choice_of(model, call_of(kAr, 4096)).time_us);
  }
  const GroupPlan minmax = group(model, {call_of(kAr, 4096, DataType::kFloat32, ReduceOp::kMin),
                                         call_of(kAr, 4096, DataType::kFloat32, ReduceOp::kMax)});
  CHECK(minmax.calls[0].choice.time_us == choice_of(model, call_of(kAr, 8192)).time_us);
  const GroupPlan gathers =
      group(model, {call_of(kAg, 4096), call_of(kAg, 2048, DataType::kFloat64)});
  CHECK(gathers.calls[0].choice.time_us == choice_of(model, call_of(kAg, 8192)).time_us);
  CHECK(gathers.calls[1].split.count_lo <= 2048);
}

TEST_CASE("many calls share channels and pay latency for it", "[nccl][group]") {
  const NcclModel model = model_of(nodes_of(1, 8, 80));
  const std::vector<Call> calls(33, call_of(kAr, 1024));
  const GroupPlan plan = group(model, calls);
  Call sum = call_of(kAr, 33 * 1024);
  sum.pipe_ops = 3;  // 33 calls on 16 channels
  CHECK(plan.calls[0].choice.time_us == choice_of(model, sum).time_us);
  int last = 0;
  for (const PlannedCall& planned : plan.calls) {
    CHECK(planned.split.channel_lo >= last);
    last = planned.split.channel_hi;
    CHECK(last < 16);
  }
  CHECK(last > 0);
}

TEST_CASE("a group runs plain calls first, then NVLS, then CollNet", "[nccl][group]") {
  const NcclModel model =
      model_of(with_collnet(nodes_of(2, 8)), {{"NCCL_ALGO",
                                               "Ring;AllReduce:NVLSTree;AllGather:NVLS;"
                                               "ReduceScatter:CollNetDirect"}});
  const GroupPlan plan = group(
      model, {call_of(kAg, 1 << 20), call_of(Function::kReduceScatter, 1 << 20),
              call_of(kAr, 1 << 20), call_of(Function::kBroadcast, 1 << 20), call_of(kAr, 0)});
  CHECK(order(plan) == std::vector<std::size_t>{3, 2, 1, 0});
  CHECK(plan.calls[0].split.kind == ChannelKind::kPlain);
  CHECK(plan.calls[1].split.kind == ChannelKind::kNvls);
  CHECK(plan.calls[2].split.kind == ChannelKind::kCollnet);
  CHECK(plan.calls[3].split.kind == ChannelKind::kCollnetNvls);
  CHECK(plan.block_threads == 640);
}

TEST_CASE("an empty group runs nothing and a bad call spoils it", "[nccl][group]") {
  const NcclModel model = model_of(nodes_of(1, 8));
  CHECK(group(model, {}).calls.empty());
  CHECK(group(model, {call_of(kAr, 0)}).block_threads == 0);
  const std::vector<Call> bad = {call_of(kAr, 1), call_of(Function::kRecv, 1)};
  CHECK(!plan_group(model, bad));
}

}  // namespace rehearse::nccl_group_test
