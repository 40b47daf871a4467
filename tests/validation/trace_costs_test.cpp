// SPDX-License-Identifier: Apache-2.0
#include "validation/calibrate/trace_costs.hpp"

#include <catch2/catch.hpp>

namespace rehearse::trace_costs_test {
using namespace rehearse;
using namespace rehearse::validation;

namespace {

// Kernels of 100 us one after the other, each with its launch and a copy.
traces::Trace worked(int kernels) {
  traces::Trace trace;
  traces::RankTrace& rank = trace.ranks.emplace_back();
  const uint32_t name = trace.strings.intern("gemm");
  rank.lanes = {{traces::LaneKind::kHostThread, 1, 0}, {traces::LaneKind::kStream, 7, 0}};
  for (int k = 0; k < kernels; ++k) {
    const Nanos start = Nanos{k} * 1'000'000;
    rank.ops.add(traces::OpKind::kLaunch, 0, 0, start - 10'000, 5'000, k + 1);
    rank.ops.add(traces::OpKind::kKernel, 1, name, start, 100'000, k + 1);
    rank.ops.add_copy(1, 0, start + 500'000, 100'000, 0,
                      {traces::CopyDirection::kHostToDevice, 2'000'000});
  }
  rank.ops.sort();
  return trace;
}

const TraceCost& named(const std::vector<TraceCost>& costs, const std::string& word) {
  for (const TraceCost& cost : costs) {
    if (cost.what.find(word) != std::string::npos) return cost;
  }
  FAIL("no cost with " << word);
  return costs.front();
}

}  // namespace

TEST_CASE("a trace tells what launches and copies cost", "[validation][calibrate]") {
  const auto costs = trace_costs(worked(60));
  CHECK(named(costs, "launch").median == Approx(5));
  CHECK(named(costs, "idle stream").median == Approx(5));
  CHECK(named(costs, "host to GPU").median == Approx(20));
  CHECK_FALSE(named(costs, "GPU to host").determined);
}

TEST_CASE("what a trace has too little of is undetermined", "[validation][calibrate]") {
  for (const TraceCost& cost : trace_costs(worked(4))) {
    INFO(cost.what);
    CHECK_FALSE(cost.determined);
    CHECK_FALSE(cost.note.empty());
  }
  CHECK(trace_costs({}).size() == 4);
}

}  // namespace rehearse::trace_costs_test
