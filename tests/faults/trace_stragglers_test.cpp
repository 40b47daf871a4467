// SPDX-License-Identifier: Apache-2.0
#include "faults/diagnose/trace_stragglers.hpp"

#include <catch2/catch.hpp>
#include <functional>

namespace rehearse::trace_stragglers_test {
using namespace rehearse;
using namespace rehearse::faults;

namespace {

constexpr Nanos kMs = 1'000'000;

// Pipelines of two places: ranks 0 to n/2 - 1 send to those above. `work` and `gap` by step and rank, in ms.
traces::Trace pipelines(uint32_t ranks, const std::function<double(int, uint32_t)>& work,
                        const std::function<double(int, uint32_t)>& gap = {}) {
  traces::Trace trace;
  const uint32_t kernel = trace.strings.intern("work"), send = trace.strings.intern("send");
  for (uint32_t r = 0; r < ranks / 2; ++r) {
    trace.communicators.push_back({"pp" + std::to_string(r), "", {r, r + ranks / 2}, "nccl"});
  }
  for (uint32_t r = 0; r < ranks; ++r) {
    traces::RankTrace rank;
    rank.rank = r;
    rank.lanes.push_back({traces::LaneKind::kStream, 7, 0});
    for (int s = 0; s < 8; ++s) {
      const Nanos at = s * 200 * kMs;
      const auto own = static_cast<Nanos>(work(s, r) * kMs);
      const auto idle = gap ? static_cast<Nanos>(gap(s, r) * kMs) : 0;
      rank.steps.push_back({s, at, at + 200 * kMs});
      rank.ops.add(traces::OpKind::kKernel, 0, kernel, at, own);
      traces::Call call;
      call.collective = r < ranks / 2 ? traces::Collective::kSend : traces::Collective::kRecv;
      call.communicator = r % (ranks / 2);
      call.peer = r < ranks / 2 ? 1 : 0;
      call.sequence = s;
      rank.ops.add_call(0, send, at + own + idle, 200 * kMs - own - idle, 0, call);
    }
    trace.ranks.push_back(std::move(rank));
  }
  return trace;
}

}  // namespace

TEST_CASE("a place of the pipeline with more work in all steps is a slow stage",
          "[faults][stragglers]") {
  const auto found =
      find_stragglers(pipelines(8, [](int, uint32_t r) { return r >= 4 ? 130 : 100; }));
  CHECK(found.kind == "fixed-stage");
  CHECK(found.ranks == std::vector<uint32_t>{4, 5, 6, 7});
  CHECK(found.by_stage == Approx(15.0 / 115));
  CHECK(found.by_rank == Approx(0).margin(1e-9));
}

TEST_CASE("a rank with more work than its place in all steps is a slow rank",
          "[faults][stragglers]") {
  const auto found =
      find_stragglers(pipelines(8, [](int, uint32_t r) { return r == 2 ? 150 : 100; }));
  CHECK(found.kind == "fixed-rank");
  CHECK(found.ranks == std::vector<uint32_t>{2});
}

TEST_CASE("another rank in each step is random, with gaps instead of work rotating",
          "[faults][stragglers]") {
  const auto another = [](int s, uint32_t r) { return r == uint32_t(s) % 8 ? 150.0 : 100.0; };
  CHECK(find_stragglers(pipelines(8, another)).kind == "random");
  const auto late = [](int s, uint32_t r) { return r == uint32_t(s) % 8 ? 40.0 : 0.0; };
  CHECK(find_stragglers(pipelines(
                            8, [](int, uint32_t) { return 100; }, late))
            .kind == "rotating");
}

TEST_CASE("steps that are longer for all have no straggler", "[faults][stragglers]") {
  const auto found =
      find_stragglers(pipelines(8, [](int s, uint32_t) { return s == 3 ? 180 : 100; }));
  CHECK(found.kind.empty());
  CHECK(find_stragglers({}).kind.empty());
}

TEST_CASE("kinds of stragglers lead to faults that make them", "[faults][stragglers]") {
  const auto catalogue = FaultCatalogue::load_shipped();
  REQUIRE(catalogue);
  const auto stage =
      diagnose_trace(pipelines(8, [](int, uint32_t r) { return r >= 4 ? 130 : 100; }), *catalogue);
  REQUIRE(stage.causes_size() > 0);
  CHECK(stage.symptom().id() == "D2.2");
  CHECK(stage.causes(0).fault() == "F40");
  const auto healthy = diagnose_trace(pipelines(8, [](int, uint32_t) { return 100; }), *catalogue);
  CHECK(healthy.symptom().id() == "healthy");
  CHECK(healthy.causes_size() == 0);
}

}  // namespace rehearse::trace_stragglers_test
