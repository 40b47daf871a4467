// SPDX-License-Identifier: Apache-2.0
// Members that come to one call and do not mean the same: what the run ends with, who is named, what is printed.
#include <algorithm>
#include <catch2/catch.hpp>
#include <functional>

#include "sim/outcome/outcome.hpp"
#include "sim/scenario/transform.hpp"
#include "tests/sim/small_trace.hpp"

namespace rehearse::disagreement_test {
using namespace rehearse;
using namespace rehearse::sim;
using rehearse::tests::SmallTrace;
using traces::Collective;

namespace {

// Four ranks; each call moves its bytes over one link of 1 GB/s.
struct Run {
  explicit Run(SmallTrace& small, const pb::Launch& launch = {},
               const std::function<void(traces::Program&)>& edit = {}) {
    auto built = traces::build_program(small.trace());
    REQUIRE(built);
    traces::Program program = std::move(*built);
    if (edit) edit(program);
    ReplayOptions options;
    options.traffic = [](const traces::Call& call, uint32_t) -> Result<CallTraffic> {
      CallTraffic traffic;
      traffic.flows.push_back({{{0, 1}}, static_cast<double>(call.bytes_in)});
      return traffic;
    };
    const std::vector<BytesPerSec> capacity = {1e9};
    options.capacity = capacity;
    const auto fabric = make_reference_fabric(capacity);
    SilentReporter silent;
    const auto replayed = replay(program, options, *fabric, silent);
    REQUIRE(replayed);
    const std::vector<CommunicatorModel> models;
    const platforms::Links links{};
    const Schedule schedule{};
    const Evidence evidence{program, small.trace().strings, *replayed, models, links, options,
                            schedule};
    out.set_verdict(replayed->completed ? pb::COMPLETED : pb::HANG);
    if (!replayed->completed) fill_hang(evidence, out);
    fill_disagreement(evidence, launch, out);
  }
  [[nodiscard]] std::vector<uint32_t> blamed() const {
    std::vector<uint32_t> ranks;
    for (const pb::Culprit& culprit : out.culprits()) ranks.push_back(culprit.rank());
    return ranks;
  }
  [[nodiscard]] bool found() const {
    for (const pb::OutcomeFinding& finding : out.findings()) {
      if (finding.id() == "members-disagree") return finding.count() == 1;
    }
    return false;
  }
  pb::Outcome out;
};

pb::Launch launch_of(pb::Framework framework) {
  pb::Launch launch;
  launch.set_framework(framework);
  return launch;
}

SmallTrace one_all_reduce() {
  SmallTrace small(4);
  small.all_reduce({0, 1, 2, 3}, 4000);
  return small;
}

}  // namespace

TEST_CASE("members that agree are not mentioned", "[sim][disagreement]") {
  SmallTrace small = one_all_reduce();
  const Run run(small);
  CHECK(run.out.verdict() == pb::COMPLETED);
  CHECK(run.blamed().empty());
  CHECK(run.out.findings().empty());
}

TEST_CASE("another type of the same size ends with wrong numbers and names the minority",
          "[sim][disagreement]") {
  SmallTrace small = one_all_reduce();
  const Run run(small, {}, [](traces::Program& program) {
    program.ranks[2].calls[0].dtype = traces::DType::kInt32;
  });
  CHECK(run.out.verdict() == pb::WRONG_SEMANTICS);
  CHECK(run.blamed() == std::vector<uint32_t>{2});
  CHECK(run.found());
  CHECK(run.out.error_text().empty());
}

TEST_CASE("another reduction ends with wrong numbers", "[sim][disagreement]") {
  SmallTrace small = one_all_reduce();
  const Run run(small, {}, [](traces::Program& program) {
    for (auto& rank : program.ranks) rank.calls[0].reduction = traces::Reduction::kSum;
    program.ranks[0].calls[0].reduction = traces::Reduction::kMax;
  });
  CHECK(run.out.verdict() == pb::WRONG_SEMANTICS);
  CHECK(run.blamed() == std::vector<uint32_t>{0});
}

TEST_CASE("another size never ends and names who differs", "[sim][disagreement]") {
  SmallTrace small(4);
  small.all_reduce({0, 1, 2}, 4000, {0, 1, 2, 3});
  small.all_reduce({3}, 8000, {0, 1, 2, 3});
  const Run run(small);
  CHECK(run.out.verdict() == pb::HANG);
  CHECK(run.blamed() == std::vector<uint32_t>{3});
  CHECK(run.found());
  // The others wait for the one of another opinion.
  for (const pb::Wait& wait : run.out.waits()) {
    if (wait.rank() == 3) continue;
    REQUIRE(wait.for_ranks_size() == 1);
    CHECK(wait.for_ranks(0) == 3);
  }
}

TEST_CASE("calls in another order never end", "[sim][disagreement]") {
  const std::vector<uint32_t> all = {0, 1, 2, 3};
  SmallTrace small(4);
  for (uint32_t r : {0u, 1u, 2u}) {
    small.call(r, all, Collective::kAllReduce, 4000);
    small.call(r, all, Collective::kAllGather, 4000);
  }
  small.call(3, all, Collective::kAllGather, 4000);
  small.call(3, all, Collective::kAllReduce, 4000);
  const Run run(small);
  CHECK(run.out.verdict() == pb::HANG);
  CHECK(run.blamed() == std::vector<uint32_t>{3});
}

TEST_CASE("a call on another group leaves both groups waiting, and its caller is named",
          "[sim][disagreement]") {
  SmallTrace small(4);
  small.all_reduce({0, 1, 3}, 4000, {0, 1, 2, 3});
  small.all_reduce({2}, 4000, {1, 2});
  const Run run(small);
  CHECK(run.out.verdict() == pb::HANG);
  CHECK_FALSE(run.found());
  std::vector<uint32_t> blamed = run.blamed();
  CHECK(std::count(blamed.begin(), blamed.end(), 2u) == 1);
  CHECK(run.out.waits_size() == 4);
}

TEST_CASE("two groups entered in opposite order wait in a cycle", "[sim][disagreement]") {
  SmallTrace small(2);
  const std::vector<uint32_t> a = {0, 1}, b = {1, 0};
  small.call(0, a, Collective::kAllReduce, 4000);
  small.call(0, b, Collective::kAllReduce, 4000);
  small.call(1, b, Collective::kAllReduce, 4000);
  small.call(1, a, Collective::kAllReduce, 4000);
  const Run run(small);
  CHECK(run.out.verdict() == pb::HANG);
  CHECK(run.blamed() == std::vector<uint32_t>{0, 1});
  REQUIRE(run.out.waits_size() == 2);
  CHECK(run.out.waits(0).for_ranks(0) != run.out.waits(0).rank());
}

TEST_CASE("Horovod compares sizes and types and says so", "[sim][disagreement]") {
  SmallTrace small = one_all_reduce();
  const auto other_size = [](traces::Program& program) {
    program.ranks[1].calls[0].bytes_in = program.ranks[1].calls[0].bytes_out = 8000;
  };
  const Run shape(small, launch_of(pb::HOROVOD), other_size);
  CHECK(shape.out.verdict() == pb::CRASH);
  REQUIRE(shape.out.error_text_size() == 1);
  CHECK(shape.out.error_text(0).text() ==
        "Mismatched ALLREDUCE tensor shapes: One rank sent a tensor of shape [1000], but another "
        "rank sent a tensor of shape [2000].");
  const Run type(small, launch_of(pb::HOROVOD), [](traces::Program& program) {
    program.ranks[1].calls[0].dtype = traces::DType::kInt32;
  });
  CHECK(type.out.verdict() == pb::CRASH);
  REQUIRE(type.out.error_text_size() == 1);
  CHECK(type.out.error_text(0).text().find("Mismatched data types") == 0);
  CHECK(type.blamed() == std::vector<uint32_t>{1});
}

TEST_CASE("Horovod waits for a tensor that one rank leaves out", "[sim][disagreement]") {
  SmallTrace small(3);
  small.all_reduce({0, 1, 2}, 4000);
  small.all_reduce({0, 1}, 8000, {0, 1, 2});
  small.all_reduce({0, 1, 2}, 2000);
  const Run run(small, launch_of(pb::HOROVOD));
  CHECK(run.out.verdict() == pb::HANG);
  CHECK(run.blamed() == std::vector<uint32_t>{2});
}

TEST_CASE("PyTorch compares only with TORCH_DISTRIBUTED_DEBUG=DETAIL", "[sim][disagreement]") {
  SmallTrace small = one_all_reduce();
  const auto other_type = [](traces::Program& program) {
    program.ranks[3].calls[0].dtype = traces::DType::kInt32;
  };
  pb::Launch launch = launch_of(pb::PYTORCH);
  CHECK(Run(small, launch, other_type).out.verdict() == pb::WRONG_SEMANTICS);
  (*launch.mutable_env())["TORCH_DISTRIBUTED_DEBUG"] = "DETAIL";
  const Run detail(small, launch, other_type);
  CHECK(detail.out.verdict() == pb::CRASH);
  REQUIRE(detail.out.error_text_size() == 1);
  CHECK(detail.out.error_text(0).rank() == 3);
  CHECK(detail.out.error_text(0).text().find("Detected mismatch between collectives on ranks. "
                                             "Rank 0 is running collective") == 0);
}

TEST_CASE(
    "of two calls that wait for each other the fewer who come the other way round are to blame",
    "[sim][outcome]") {
  const std::vector<uint32_t> all = {0, 1, 2, 3}, some = {0, 1, 2};
  SmallTrace three(4);
  for (const uint32_t r : {0, 1, 3}) three.all_reduce({r}, 1000, all);
  for (const uint32_t r : {0, 1, 2}) three.all_reduce({r}, 4000, some);
  three.all_reduce({2}, 1000, all);
  const Run odd(three);
  CHECK(odd.out.verdict() == pb::HANG);
  CHECK(odd.blamed() == std::vector<uint32_t>{2});
  CHECK(odd.out.culprits(0).why().find("2 ranks the other way round") != std::string::npos);
  SmallTrace even(4);
  for (const uint32_t r : {0, 2, 3}) even.all_reduce({r}, 1000, all);
  for (const uint32_t r : {0, 1}) even.all_reduce({r}, 4000, {0, 1});
  even.all_reduce({1}, 1000, all);
  CHECK(Run(even).blamed() == std::vector<uint32_t>{0, 1});
}

TEST_CASE("a rank whose own operations wait for each other is to blame", "[sim][outcome]") {
  SmallTrace trace(4);
  for (int i = 0; i < 2; ++i) trace.all_reduce({0, 1, 2, 3}, 1000);
  const Run run(trace, {}, [](traces::Program& program) {
    traces::RankProgram& rank = program.ranks[1];
    add_waits(rank, {{rank.call_op[0], rank.call_op[1]}});
  });
  CHECK(run.out.verdict() == pb::HANG);
  CHECK(run.blamed() == std::vector<uint32_t>{1});
}

}  // namespace rehearse::disagreement_test
