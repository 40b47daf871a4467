// SPDX-License-Identifier: Apache-2.0
// Properties that hold for every communicator and call.
#include <random>

#include "sim/nccl/rounding.hpp"
#include "tests/sim/nccl_fixture.hpp"

namespace rehearse::nccl_properties_test {
using namespace rehearse::sim;
using namespace rehearse::sim::testing;

namespace {

class Dice {
 public:
  int pick(std::initializer_list<int> values) {
    return *(values.begin() + static_cast<std::ptrdiff_t>(engine_() % values.size()));
  }
  std::int64_t size(int max_bits) {
    const int bits = static_cast<int>(engine_() % static_cast<unsigned>(max_bits));
    return static_cast<std::int64_t>(engine_() & ((std::uint64_t{1} << bits) - 1)) + 1;
  }

 private:
  std::mt19937_64 engine_{20240611};
};

CommShape random_shape(Dice& dice) {
  CommShape shape = nodes_of(dice.pick({1, 2, 3, 8, 33}), dice.pick({1, 2, 4, 8}),
                             dice.pick({70, 80, 86, 90, 100}));
  if (dice.pick({0, 1}) == 1) shape = with_collnet(shape, shape.ranks_per_node);
  shape.n_channels = dice.pick({2, 4, 12, 24, 32, 64});
  shape.ring.bw_inter = shape.tree.bw_inter = dice.pick({3, 12, 24, 48});
  shape.cpu_vendor = dice.pick({0, 1}) == 1 ? CpuVendor::kAmd : CpuVendor::kIntel;
  return shape;
}

}  // namespace

// NCCL's size correction of trees jumps at powers of two, so trees are compared between them only.
TEST_CASE("for one algorithm and protocol more bytes never take less time", "[nccl][property]") {
  Dice dice;
  for (int trial = 0; trial < 200; ++trial) {
    const NcclModel model = model_of(random_shape(dice));
    for (const Variant& v : all_variants()) {
      if (!model.table.at(v).available()) continue;
      const bool tree = v.algorithm == Algorithm::kTree;
      const std::int64_t count = dice.size(28);
      const std::int64_t more = tree ? count + count / 4 : 3 * count;
      if (tree && floor_log2(more) != floor_log2(count)) continue;
      REQUIRE(predicted_time_us(model, call_of(v.function, count), v.algorithm, v.protocol) <=
              predicted_time_us(model, call_of(v.function, more), v.algorithm, v.protocol));
    }
  }
}

TEST_CASE("a split carries every element once, on channels that exist", "[nccl][property]") {
  Dice dice;
  for (int trial = 0; trial < 2000; ++trial) {
    const NcclModel model = model_of(random_shape(dice));
    if (model.shape.n_ranks == 1) continue;
    const Call call =
        call_of(kCollectives[static_cast<std::size_t>(dice.pick({0, 1, 2, 3, 4}))], dice.size(30));
    const PlannedCall plan = plan_of(model, call);
    const ChannelSplit& s = plan.split;
    REQUIRE(s.channel_lo == 0);
    REQUIRE(s.n_channels() >= 1);
    REQUIRE(s.n_channels() <= plan.choice.max_channels);
    if (!shares_evenly(s.kind)) {
      const std::int64_t mids = s.count_mid == 0 ? 0 : s.n_channels() - 2;
      REQUIRE(s.count_lo + mids * s.count_mid + s.count_hi == call.count);
      REQUIRE(s.n_channels() == 1 + mids + (s.count_hi != 0 ? 1 : 0));
    }
    REQUIRE(plan.lo.chunk_bytes > 0);
    REQUIRE(plan.lo.loops >= 1);
    const std::int64_t sharing = shares_evenly(s.kind) ? s.n_channels() : 1;
    Call part = call;
    part.count = s.count_lo;
    REQUIRE(plan.lo.loops * plan.lo.chunks_per_loop * plan.lo.chunk_bytes * sharing >=
            total_bytes(part, model.shape.n_ranks));
  }
}

TEST_CASE("a group carries every element of every call once", "[nccl][property]") {
  Dice dice;
  for (int trial = 0; trial < 500; ++trial) {
    const NcclModel model = model_of(random_shape(dice));
    if (model.shape.n_ranks == 1) continue;
    std::vector<Call> calls;
    for (int i = dice.pick({1, 2, 5, 40}); i > 0; --i) {
      calls.push_back(call_of(kCollectives[static_cast<std::size_t>(dice.pick({0, 1, 2, 3, 4}))],
                              dice.size(24)));
    }
    const auto plan = plan_group(model, calls);
    REQUIRE(plan.has_value());
    REQUIRE(plan->calls.size() == calls.size());
    std::vector<bool> seen(calls.size());
    for (const PlannedCall& planned : plan->calls) {
      REQUIRE(!seen[planned.call]);
      seen[planned.call] = true;
      const ChannelSplit& s = planned.split;
      REQUIRE(s.channel_hi < kMaxChannels);
      if (shares_evenly(s.kind)) continue;
      const std::int64_t mids = s.count_mid == 0 ? 0 : s.n_channels() - 2;
      REQUIRE(s.count_lo + mids * s.count_mid + s.count_hi == calls[planned.call].count);
    }
  }
}

TEST_CASE("a better link never makes a ring slower", "[nccl][property]") {
  Dice dice;
  for (int trial = 0; trial < 200; ++trial) {
    CommShape shape = random_shape(dice);
    const NcclModel before = model_of(shape);
    shape.ring.bw_intra *= 2;
    shape.ring.bw_inter *= 2;
    const NcclModel after = model_of(shape);
    for (const Function f : kCollectives) {
      for (const Protocol p : kProtocols) {
        if (!cost(before, f, Algorithm::kRing, p).available()) continue;
        const Call call = call_of(f, dice.size(30));
        REQUIRE(predicted_time_us(after, call, Algorithm::kRing, p) <=
                predicted_time_us(before, call, Algorithm::kRing, p));
      }
    }
  }
}

}  // namespace rehearse::nccl_properties_test
