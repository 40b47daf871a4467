// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "tests/traces/trace_samples.hpp"
#include "traces/inspect/inspection.hpp"
#include "traces/inspect/intervals.hpp"

namespace rehearse::inspect_test {
using namespace rehearse;
using namespace rehearse::traces;

namespace {

constexpr LaneId kHost = 0, kCompute = 1, kNetwork = 2;

// Two ranks, two steps of 100 ns. Kernels and all-reduces of "world" (communicator 0):
//   rank 0: kernel 0-40, all_reduce 0 at 30-70, kernel 100-140, all_reduce 1 at 150-190
//   rank 1: kernel 0-50, all_reduce 0 at 55-70, kernel 100-130, all_reduce 1 at 140-190
Trace two_ranks() {
  Trace trace;
  trace.header.set_world_size(2);
  const uint32_t gemm = trace.strings.intern("gemm"), ring = trace.strings.intern("ncclAllReduce");
  trace.communicators = {{"world", "data parallel", {0, 1}, "nccl"}};
  const Nanos kernels[2][2][2] = {{{0, 40}, {100, 40}}, {{0, 50}, {100, 30}}};
  const Nanos calls[2][2][2] = {{{30, 40}, {150, 40}}, {{55, 15}, {140, 50}}};
  for (RankId r = 0; r < 2; ++r) {
    RankTrace rank;
    rank.rank = r;
    rank.gpu_model = "A100";
    rank.lanes = {
        {LaneKind::kHostThread, 1, 0}, {LaneKind::kStream, 7, 0}, {LaneKind::kStream, 8, 0}};
    rank.steps = {{10, 0, 100}, {11, 100, 200}};
    for (size_t s = 0; s < 2; ++s) {
      rank.ops.add(OpKind::kKernel, kCompute, gemm, kernels[r][s][0], kernels[r][s][1]);
      rank.ops.add_call(kNetwork, ring, calls[r][s][0], calls[r][s][1], 0,
                        {.sequence = static_cast<int64_t>(s), .bytes_in = 1000, .bytes_out = 1000});
    }
    trace.ranks.push_back(std::move(rank));
  }
  return trace;
}

Inspection inspected(const Trace& trace, const InspectOptions& options = {}) {
  auto result = inspect(trace, options);
  REQUIRE(result);
  return std::move(*result);
}

}  // namespace

TEST_CASE("time covered by unions of intervals", "[traces][inspect]") {
  IntervalUnion a, b;
  a.add(0, 10);
  a.add(5, 8);
  a.add(10, 12);
  a.add(20, 30);
  a.add(25, 25);
  b.add(11, 22);
  b.add(28, 40);
  CHECK(a.parts().size() == 2);
  CHECK(a.covered({0, 100}) == 22);
  CHECK(a.covered({11, 21}) == 2);
  CHECK(a.covered({12, 20}) == 0);
  CHECK(covered_by_both(a, b, {0, 100}) == 1 + 2 + 2);
  CHECK(covered_by_both(a, b, {21, 29}) == 1 + 1);
  CHECK(covered_by_both(a, {}, {0, 100}) == 0);
}

TEST_CASE("a collective is counted once and its calls on each rank", "[traces][inspect]") {
  const Inspection in = inspected(two_ranks());
  CHECK(in.ranks == std::vector<RankId>{0, 1});
  CHECK(in.operations == 8);
  CHECK(in.collectives == 2);
  CHECK(in.point_to_point == 0);
  CHECK(in.nccl_kernels == 4);
  CHECK(in.by_kind[static_cast<size_t>(OpKind::kKernel)] == 4);
  CHECK(in.gpus.at("A100") == 2);
  const CollectiveTotals& all_reduce = in.totals[static_cast<size_t>(Collective::kAllReduce)];
  CHECK(all_reduce.collectives == 2);
  CHECK(all_reduce.calls == 4);
  CHECK(all_reduce.bytes == 2000);
  REQUIRE(in.communicators.size() == 1);
  CHECK(in.communicators[0].members.size() == 2);
  CHECK(in.communicators[0].totals[0].calls == 4);
  REQUIRE(in.kernels.size() == 1);
  CHECK(in.kernels[0].name == "gemm");
  CHECK(in.kernels[0].count == 4);
  CHECK(in.kernels[0].total == 160);
  CHECK(in.findings.rows().empty());
}

TEST_CASE("the time of a rank is compute, exposed communication and idle", "[traces][inspect]") {
  const Inspection in = inspected(two_ranks());
  REQUIRE(in.times.size() == 2);
  const RankTimes& zero = in.times[0];
  CHECK(zero.window == 200);
  CHECK(zero.compute == 80);
  CHECK(zero.overlapped == 10);
  CHECK(zero.exposed == 30 + 40);
  CHECK(zero.idle == 50);
  const RankTimes& one = in.times[1];
  CHECK(one.compute == 80);
  CHECK(one.overlapped == 0);
  CHECK(one.exposed == 15 + 50);
  CHECK(one.idle == 55);
  CHECK(in.steps.per_rank == 2);
  CHECK(in.steps.mean == 100);
  CHECK(in.steps.p99 == 100);
}

TEST_CASE("work that began before a step counts inside it up to the step's bounds",
          "[traces][inspect]") {
  Trace trace = two_ranks();
  trace.ranks[0].ops.duration[0] = 120;  // kernel 0-120
  const Inspection in = inspected(trace, {.rank = 0, .step = 11});
  REQUIRE(in.times.size() == 1);
  CHECK(in.times[0].compute == 40);
  CHECK(in.times[0].operations == 2);
}

TEST_CASE("the rank that starts a collective last is named with its lateness",
          "[traces][inspect]") {
  Trace trace = two_ranks();
  const Inspection two = inspected(trace);
  REQUIRE(two.late.size() == 2);
  CHECK(two.late[0].rank == 1);
  CHECK(two.late[0].times == 1);
  CHECK(two.late[0].after_first == 25);
  CHECK(two.late[0].after_next == 25);
  CHECK(two.late[1].rank == 0);
  CHECK(two.late[1].after_first == 10);

  RankTrace third = trace.ranks[1];
  third.rank = 2;
  third.ops.start[1] = 60;
  third.ops.start[3] = 145;
  trace.ranks.push_back(third);
  trace.communicators[0].members = {0, 1, 2};
  const Inspection three = inspected(trace);
  REQUIRE(three.late.size() == 2);
  // all_reduce 0 starts at 30, 55, 60; all_reduce 1 at 150, 140, 145.
  CHECK(three.late[0].rank == 0);
  CHECK(three.late[0].after_first == 10);
  CHECK(three.late[0].after_next == 5);
  CHECK(three.late[1].rank == 2);
  CHECK(three.late[1].after_first == 30);
  CHECK(three.late[1].after_next == 5);
}

TEST_CASE("matched collectives are listed when asked for", "[traces][inspect]") {
  CHECK(inspected(two_ranks()).matched.empty());
  const Inspection in = inspected(two_ranks(), {.list_collectives = true});
  REQUIRE(in.matched.size() == 2);
  CHECK(in.matched[1].sequence == 1);
  CHECK(in.matched[1].first_start == 140);
  CHECK(in.matched[1].last_start == 150);
  CHECK(in.matched[1].last_arriver == 0);
  CHECK(in.matched[0].ranks == 2);
  CHECK(in.matched[0].bytes == 1000);
  CHECK(in.matched[0].last_end - in.matched[0].first_end == 0);
}

TEST_CASE("a rank or a step can be looked at alone", "[traces][inspect]") {
  const Inspection rank = inspected(two_ranks(), {.rank = 1});
  CHECK(rank.operations == 4);
  CHECK(rank.nccl_kernels == 2);
  CHECK(rank.collectives == 2);
  CHECK(rank.times.size() == 1);
  CHECK(rank.late.size() == 2);
  const Inspection step = inspected(two_ranks(), {.step = 11, .list_collectives = true});
  CHECK(step.operations == 4);
  CHECK(step.collectives == 1);
  CHECK(step.matched[0].sequence == 1);
  CHECK(step.steps.per_rank == 1);
  CHECK(step.kernels[0].total == 70);
  CHECK(step.times[0].window == 100);
}

TEST_CASE("a rank or step that is not there is refused with those that are", "[traces][inspect]") {
  const auto rank = inspect(two_ranks(), {.rank = 2});
  REQUIRE_FALSE(rank);
  CHECK(rank.error().code == Code::kUsage);
  CHECK(rank.error().fix == "recorded are ranks 0,1");
  const auto step = inspect(two_ranks(), {.step = 3});
  REQUIRE_FALSE(step);
  CHECK(step.error().fix == "recorded are steps 10 to 11");
}

TEST_CASE("a rank that never called a collective is a finding that names it", "[traces][inspect]") {
  Trace trace = two_ranks();
  trace.ranks[1].ops.calls[1].sequence = 2;
  const Inspection in = inspected(trace);
  CHECK(in.collectives == 3);
  REQUIRE(in.findings.count("collective-member-missing") == 2);
  CHECK(in.findings.rows()[0].first ==
        "all_reduce 1 on communicator world: rank 1 never called it");
  CHECK(in.late.size() == 1);
}

TEST_CASE("a member that was not recorded is no finding", "[traces][inspect]") {
  Trace trace = two_ranks();
  trace.communicators[0].members = {0, 1, 2, 3};
  const Inspection in = inspected(trace);
  CHECK(in.findings.rows().empty());
  CHECK(in.communicators[0].members.size() == 4);
  CHECK(in.communicators[0].recorded == 2);
}

TEST_CASE("ranks that disagree on type or size of a collective are findings", "[traces][inspect]") {
  Trace trace = two_ranks();
  trace.ranks[1].ops.calls[0].bytes_in = 999;
  trace.ranks[1].ops.calls[1].collective = Collective::kBarrier;
  const Inspection in = inspected(trace);
  CHECK(in.findings.count("collective-bytes-mismatch") == 1);
  CHECK(in.findings.count("collective-type-mismatch") == 1);
  trace = two_ranks();
  trace.ranks[1].ops.calls[0].bytes_in = 0;  // not recorded
  CHECK(inspected(trace).findings.rows().empty());
  trace.ranks[1].ops.calls[1].sequence = 0;
  CHECK(inspected(trace).findings.count("collective-sequence-repeated") == 1);
  trace = two_ranks();
  trace.communicators[0].members = {0};
  CHECK(inspected(trace).findings.count("call-of-non-member") == 2);
}

TEST_CASE("all-to-all and gather may differ in size between ranks", "[traces][inspect]") {
  Trace trace = two_ranks();
  for (RankTrace& rank : trace.ranks) rank.ops.calls[0].collective = Collective::kAllToAll;
  trace.ranks[1].ops.calls[0].bytes_in = 5;
  CHECK(inspected(trace).findings.rows().empty());
}

TEST_CASE("a send and its receive are one pair", "[traces][inspect]") {
  Trace trace = two_ranks();
  for (RankTrace& rank : trace.ranks) rank.ops = {};
  const Call send{.sequence = 0, .collective = Collective::kSend, .bytes_in = 64, .peer = 1};
  Call receive{.sequence = 0, .collective = Collective::kRecv, .bytes_out = 64, .peer = 0};
  trace.ranks[0].ops.add_call(kNetwork, 0, 10, 5, 0, send);
  trace.ranks[1].ops.add_call(kNetwork, 0, 12, 5, 0, receive);
  Inspection in = inspected(trace);
  CHECK(in.point_to_point == 1);
  CHECK(in.collectives == 0);
  CHECK(in.nccl_kernels == 2);
  CHECK(in.totals[static_cast<size_t>(Collective::kSend)].bytes == 64);
  CHECK(in.totals[static_cast<size_t>(Collective::kSend)].calls == 2);
  CHECK(in.findings.rows().empty());

  receive.sequence = 1;
  receive.bytes_out = 32;
  trace.ranks[1].ops.add_call(kNetwork, 0, 20, 5, 0, receive);
  in = inspected(trace);
  CHECK(in.point_to_point == 2);
  CHECK(in.findings.count("send-receive-unmatched") == 1);
  trace.ranks[0].ops.add_call(
      kNetwork, 0, 20, 5, 0,
      {.sequence = 1, .collective = Collective::kSend, .bytes_in = 64, .peer = 1});
  CHECK(inspected(trace).findings.count("send-receive-bytes-mismatch") == 1);
  trace.ranks[0].ops.calls.back().peer = -1;
  CHECK(inspected(trace).findings.count("peer-unknown") == 1);
}

TEST_CASE("a call seen on the host and on a stream is one call", "[traces][inspect]") {
  Trace trace = two_ranks();
  for (RankTrace& rank : trace.ranks) {
    rank.ops.add_call(kHost, 0, 0, 5, 0, {.sequence = 0, .bytes_in = 1000, .bytes_out = 1000});
    rank.ops.sort();
  }
  const Inspection in = inspected(trace);
  CHECK(in.collectives == 2);
  CHECK(in.nccl_kernels == 4);
  CHECK(in.totals[0].calls == 4);
  CHECK(in.findings.rows().empty());
}

TEST_CASE("a trace without steps is measured from first to last stream operation",
          "[traces][inspect]") {
  Trace trace = two_ranks();
  for (RankTrace& rank : trace.ranks) rank.steps.clear();
  const Inspection in = inspected(trace);
  CHECK(in.steps.per_rank == 0);
  CHECK(in.times[0].window == 190);
  CHECK(in.times[0].idle == 190 - 80 - 70);
  CHECK(in.findings.count("no-steps") == 1);
}

TEST_CASE("an empty trace can be inspected", "[traces][inspect]") {
  const Inspection in = inspected(Trace{});
  CHECK(in.ranks.empty());
  CHECK(in.operations == 0);
  CHECK(in.findings.rows().empty());
}

TEST_CASE("findings of the import stay in the inspection", "[traces][inspect]") {
  Trace trace = two_ranks();
  pb::TraceFinding& finding = *trace.header.add_findings();
  finding.set_id("negative-duration");
  finding.set_severity("data-loss");
  finding.set_count(7);
  const Inspection in = inspected(trace);
  REQUIRE(in.findings.rows().size() == 1);
  CHECK(in.findings.rows()[0].severity == Severity::kDataLoss);
  CHECK(in.findings.rows()[0].count == 7);
}

TEST_CASE("a file gives the same inspection as the trace in memory", "[traces][inspect]") {
  const samples::Folder folder;
  SilentReporter silent;
  REQUIRE(write_rtrace(two_ranks(), folder / "two.rtrace", Overwrite::kRefuse));
  const auto reader = RtraceReader::open(folder / "two.rtrace", {});
  REQUIRE(reader);
  const auto in = inspect(*reader, {}, silent);
  REQUIRE(in);
  CHECK(to_text(*in, 100) == to_text(inspected(two_ranks()), 100));
}

}  // namespace rehearse::inspect_test
