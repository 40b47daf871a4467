// SPDX-License-Identifier: Apache-2.0
// Calls that a framework collects and launches as one kernel: batch_isend_irecv, coalesced collectives.
#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/traces/import_samples.hpp"
#include "traces/inspect/inspection.hpp"
#include "traces/program/program.hpp"

namespace rehearse::import_messages_test {
using namespace rehearse;
using namespace rehearse::traces;
using namespace rehearse::traces::samples;

namespace {

constexpr const char* kSendRecv = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)";
constexpr const char* kAllGatherKernel =
    "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)";

std::string message(const char* what, int from, int to, int elements, double at, int id) {
  return fmt::format(
      R"({{"ph": "X", "cat": "cpu_op", "name": "record_param_comms", "pid": 1, "tid": 1, "ts": {}, "dur": 4, "args": {{"External id": {}, "Collective name": "{}", "dtype": "BFloat16", "In msg nelems": {}, "Out msg nelems": {}, "Group size": 2, "Process Group Name": "pp", "Process Group Ranks": "[0, 1]", "Src Rank": {}, "Dst Rank": {}}}}},)",
      at, id, what, elements, elements, from, to);
}

std::string launched(double at, int correlation, const char* kernel = kSendRecv,
                     const char* call = "cudaLaunchKernelExC") {
  return fmt::format(
      R"({{"ph": "X", "cat": "cuda_runtime", "name": "{}", "pid": 1, "tid": 1, "ts": {}, "dur": 2, "args": {{"correlation": {}}}}},
         {{"ph": "X", "cat": "kernel", "name": "{}", "pid": 0, "tid": 9, "ts": {}, "dur": 50, "args": {{"device": 0, "stream": 9, "correlation": {}}}}},)",
      call, at, correlation, kernel, at + 10, correlation);
}

// Rank `me` of two exchanges 100 elements with the other in one kernel; then 300 go from 0 to 1 alone.
std::string pipeline_rank(int me) {
  const int other = 1 - me;
  std::string events = message("send", me, other, 100, 10, 1) +
                       message("recv", other, me, 100, 20, 2) + launched(30, 7);
  // A lone message launches inside its own span.
  events += me == 0 ? message("send", 0, 1, 300, 200, 3) : message("recv", 0, 1, 300, 200, 3);
  events += launched(201, 8);
  events.pop_back();
  return events;
}

std::string gather(int elements, double at, int id) {
  return fmt::format(
      R"({{"ph": "X", "cat": "cpu_op", "name": "record_param_comms", "pid": 1, "tid": 1, "ts": {}, "dur": 4, "args": {{"External id": {}, "Collective name": "_allgather_base", "dtype": "BFloat16", "In msg nelems": {}, "Out msg nelems": {}, "Group size": 2, "Process Group Name": "dp", "Process Group Ranks": "[0, 1]"}}}},
         {{"ph": "X", "cat": "user_annotation", "name": "nccl:_all_gather_base", "pid": 1, "tid": 1, "ts": {}, "dur": 2, "args": {{"External id": {}, "Input Dims": [[{}]], "Input type": ["c10::BFloat16"]}}}},)",
      at, id, elements, 2 * elements, at + 1, id + 1000, elements);
}

}  // namespace

TEST_CASE("collected sends and receives are calls of one group", "[import][kineto]") {
  const TempFolder folder;
  folder.write("rank0.json", document(pipeline_rank(0), 0, 2));
  folder.write("rank1.json", document(pipeline_rank(1), 1, 2));
  SilentReporter silent;
  const auto got = import_files({folder.path()}, {}, silent);
  if (!got) FAIL(got.error().message());
  CHECK(got->findings.count("sendrecv-assumed-all-to-all") == 0);
  CHECK(got->findings.count("peer-unknown") == 0);
  REQUIRE(got->trace.ranks.size() == 2);
  for (const RankTrace& rank : got->trace.ranks) {
    const std::vector<Call>& calls = rank.ops.calls;
    REQUIRE(calls.size() == 3);
    CHECK(std::count_if(calls.begin(), calls.end(), [](const Call& c) { return c.group != 0; }) ==
          2);
    for (const Call& c : calls) {
      CHECK(c.peer == static_cast<int32_t>(1 - rank.rank));
      CHECK(is_point_to_point(c.collective));
      CHECK(c.bytes_in == (c.group != 0 ? 200 : 600));
    }
  }
  const auto seen = inspect(got->trace, {});
  REQUIRE(seen);
  CHECK(seen->point_to_point == 3);
  CHECK(seen->nccl_kernels == 4);
  CHECK(build_program(got->trace));
}

TEST_CASE("a kernel whose messages nothing tells is still an exchange of all", "[import][kineto]") {
  std::string events = launched(30, 7);
  events.pop_back();
  const auto got = import_text(document(events, 0, 2));
  REQUIRE(got);
  CHECK(got->findings.count("sendrecv-assumed-all-to-all") == 1);
  CHECK(got->trace.ranks[0].ops.calls.at(0).collective == Collective::kAllToAll);
}

TEST_CASE("collectives that were collected are one call of their bytes together",
          "[import][kineto]") {
  // One launches its own kernel; two are collected and run as the next.
  std::string events = gather(50, 10, 1) + launched(11, 7, kAllGatherKernel) + gather(100, 100, 2) +
                       gather(200, 110, 3) + launched(120, 8, kAllGatherKernel);
  events.pop_back();
  const auto got = import_text(document(events, 0, 2));
  REQUIRE(got);
  const std::vector<Call>& calls = got->trace.ranks[0].ops.calls;
  REQUIRE(calls.size() == 2);
  CHECK(calls[0].bytes_in == 100);
  CHECK(calls[1].bytes_in == 600);
  CHECK(calls[1].bytes_out == 1200);
  CHECK(calls[1].dtype == DType::kBf16);
  CHECK(got->trace.communicators[calls[1].communicator].id == "dp");
  CHECK(got->findings.count("calls-run-together") == 2);
  CHECK(got->findings.count("collective-without-size") == 0);
}

TEST_CASE("sizes that no buffer has stay within their limit", "[import][kineto]") {
  std::string events =
      R"js({"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllGather_RING_LL(x)", "pid": 0, "tid": 9, "ts": 5, "dur": 5, "args": {"device": 0, "stream": 9, "correlation": 1, "Collective name": "_allgather_base", "dtype": "Float", "In msg nelems": 140737488355328, "Group size": 4096}})js";
  const auto got = import_text(document(events, 0, 2));
  REQUIRE(got);
  const Call& call = got->trace.ranks[0].ops.calls.at(0);
  CHECK(call.bytes_in == Bytes{1} << 49);
  CHECK(call.bytes_out == Bytes{1} << 50);
}

TEST_CASE("a graph's kernels do not take the sizes of calls that were captured before",
          "[import][kineto]") {
  std::string events = gather(100, 100, 2) + launched(120, 8, kAllGatherKernel, "cudaGraphLaunch");
  events.pop_back();
  const auto got = import_text(document(events, 0, 2));
  REQUIRE(got);
  CHECK(got->findings.count("collective-without-size") == 1);
}

}  // namespace rehearse::import_messages_test
