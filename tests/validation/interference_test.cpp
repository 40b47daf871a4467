// SPDX-License-Identifier: Apache-2.0
#include "validation/calibrate/interference.hpp"

#include <catch2/catch.hpp>

#include "validation/calibrate/overlay.hpp"

namespace rehearse::interference_test {
using namespace rehearse;
using namespace rehearse::validation;

namespace {

// Two steps with the same kernels of one name and many sizes. In the first a collective runs beside the kernels with
// even numbers, in the second beside the odd ones; kernels beside it take `slowdown(number)` times as long.
template <typename Slowdown>
traces::Trace two_steps(int kernels, const Slowdown& slowdown) {
  traces::Trace trace;
  traces::RankTrace& rank = trace.ranks.emplace_back();
  const uint32_t name = trace.strings.intern("gemm");
  rank.lanes = {{traces::LaneKind::kHostThread, 1, 0},
                {traces::LaneKind::kStream, 7, 0},
                {traces::LaneKind::kStream, 8, 0}};
  int64_t correlation = 0;
  for (int step = 0; step < 2; ++step) {
    const Nanos begin = Nanos{step} * 1'000'000'000;
    rank.steps.push_back({step, begin, begin + 900'000'000});
    for (int k = 0; k < kernels; ++k) {
      const Nanos start = begin + Nanos{k + 1} * 1'000'000;
      const bool beside = k % 2 == step;
      const Nanos alone = 10'000 + 1'000 * Nanos{k};
      const Nanos took =
          beside ? static_cast<Nanos>(static_cast<double>(alone) * slowdown(k)) : alone;
      rank.ops.add(traces::OpKind::kLaunch, 0, 0, start - 10'000, 5'000, ++correlation);
      rank.ops.add(traces::OpKind::kKernel, 1, name, start, took, correlation);
      if (beside) rank.ops.add_call(2, 0, start - 1'000, 500'000, 0, {});
    }
  }
  rank.ops.sort();
  return trace;
}

}  // namespace

TEST_CASE("what kernels lose beside a collective is measured on the same kernels",
          "[validation][calibrate]") {
  // All of one name: compared by name alone, those beside and those alone would differ by their sizes.
  const Interference found = interference(two_steps(60, [](int) { return 1.2; }));
  REQUIRE(found.determined);
  CHECK(found.kernels == 60);
  CHECK(found.slowdown == Approx(1.2).epsilon(1e-3));
  CHECK(found.low <= found.slowdown);
  CHECK(found.slowdown <= found.high);
  CHECK_FALSE(found.at_bound);
}

TEST_CASE("interference stays within what the replay can do", "[validation][calibrate]") {
  const Interference faster = interference(two_steps(60, [](int) { return .8; }));
  CHECK(faster.slowdown == 1);
  CHECK(faster.at_bound);
  const Interference slower = interference(two_steps(60, [](int) { return 5.0; }));
  CHECK(slower.slowdown == kMostSlowdown);
  CHECK(slower.at_bound);
}

TEST_CASE("interference is undetermined where kernels are few or disagree",
          "[validation][calibrate]") {
  const Interference few = interference(two_steps(10, [](int) { return 1.2; }));
  CHECK_FALSE(few.determined);
  CHECK(few.why.find("10 kernels") != std::string::npos);
  const Interference apart =
      interference(two_steps(24, [](int k) { return k % 4 < 2 ? 1.0 : 1.9; }));
  CHECK_FALSE(apart.determined);
  CHECK(apart.why.find("disagree") != std::string::npos);
  CHECK_FALSE(interference({}).determined);
  pb::Patch overlay;
  add_interference(apart, 1, overlay);
  CHECK(overlay.set().empty());
}

TEST_CASE("an overlay states interference and draws it with the rest", "[validation][calibrate]") {
  const Interference found =
      interference(two_steps(60, [](int k) { return k % 3 == 0 ? 1.15 : 1.2; }));
  REQUIRE(found.determined);
  pb::Patch patch;
  for (int k = 0; k < 8; ++k) patch.mutable_calibration()->add_draws();
  add_interference(found, 3, patch);
  CHECK(patch.set().at("platform.efficiency.beside") == "1.2");
  CHECK(patch.calibration().parameters(0).standing() == "fitted");
  const auto draws = draws_of(patch.calibration(), 8);
  REQUIRE(draws);
  for (const pb::Patch& draw : *draws) {
    const double value = std::stod(draw.set().at("platform.efficiency.beside"));
    CHECK(value >= 1);
    CHECK(value <= kMostSlowdown);
  }
}

}  // namespace rehearse::interference_test
