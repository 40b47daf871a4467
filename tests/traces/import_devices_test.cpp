// SPDX-License-Identifier: Apache-2.0
// One process that drives several GPUs: a rank per GPU that communicates.
#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/traces/import_samples.hpp"
#include "tests/traces/nsys_samples.hpp"
#include "traces/program/program.hpp"

namespace rehearse::import_devices_test {
using namespace rehearse;
using namespace rehearse::traces;
using namespace rehearse::traces::samples;

namespace {

constexpr const char* kNccl =
    "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)";

std::string event(const std::string& category, const std::string& name, int process, int thread,
                  double at, const std::string& args) {
  return fmt::format(
      R"({{"ph": "X", "cat": "{}", "name": "{}", "pid": {}, "tid": {}, "ts": {}, "dur": 5, "args": {{{}}}}},)",
      category, name, process, thread, at, args);
}

std::string launch(int thread, double at, int correlation) {
  return event("cuda_runtime", "cudaLaunchKernel", 9, thread, at,
               fmt::format(R"("correlation": {})", correlation));
}

std::string work(const std::string& name, int device, int stream, double at, int correlation) {
  return event(
      "kernel", name, device, stream, at,
      fmt::format(R"("device": {}, "stream": {}, "correlation": {})", device, stream, correlation));
}

// The main thread 1 launches the forward pass and the collective of each GPU, thread 20 + gpu its backward.
std::string process_of(int gpus) {
  std::string events;
  for (int gpu = 0; gpu < gpus; ++gpu) {
    const int id = 10 * gpu;
    events += launch(1, 10 + gpu, id + 1) + work("forward", gpu, 7, 20, id + 1);
    events += launch(20 + gpu, 30, id + 2) + work("backward", gpu, 7, 40, id + 2);
    events += launch(1, 50 + gpu, id + 3) + work(kNccl, gpu, 9, 60 + gpu, id + 3);
    events += fmt::format(
        R"({{"ph": "i", "name": "[memory]", "pid": 9, "tid": 1, "ts": 5, "args": {{"Device Type": 1, "Device Id": {}, "Bytes": {}, "Addr": {}}}}},)",
        gpu, 1000 * (gpu + 1), gpu + 1);
  }
  events += event("cpu_op", "load", 9, 3, 1, R"("External id": 1)");
  events.pop_back();
  return events;
}

}  // namespace

TEST_CASE("GPUs of one process that communicate are ranks that meet", "[import][devices]") {
  const auto got = import_text("{\"traceEvents\": [" + process_of(4) + "]}");
  if (!got) FAIL(got.error().message());
  const Trace& trace = got->trace;
  REQUIRE(trace.ranks.size() == 4);
  CHECK(trace.header.world_size() == 4);
  CHECK(got->findings.count("process-with-several-gpus") == 4);
  CHECK(got->findings.count("several-devices") == 0);
  CHECK(got->findings.count("ranks-missing") == 0);
  for (const RankTrace& r : trace.ranks) {
    CHECK(r.gpu == r.rank);
    CHECK(count_of(r, OpKind::kKernel) == 2);
    REQUIRE(r.ops.calls.size() == 1);
    CHECK(r.ops.calls[0].sequence == 0);
    CHECK(trace.communicators[r.ops.calls[0].communicator].members ==
          std::vector<RankId>{0, 1, 2, 3});
    // The main thread serves all GPUs, the backward thread one, and one that launches nothing is shared.
    CHECK(count_of(r, OpKind::kLaunch) == 9);
    std::vector<std::string> lanes;
    for (const Lane& lane : r.lanes) lanes.push_back(trace.strings.at(lane.name));
    std::sort(lanes.begin(), lanes.end());
    CHECK(lanes == std::vector<std::string>{"stream 7", "stream 9", "thread 1",
                                            fmt::format("thread {}", 20 + r.rank), "thread 3"});
    REQUIRE(r.ops.memory.size() == 1);
    CHECK(r.ops.memory[0].bytes == 1000 * (r.rank + 1));
  }
  const auto program = build_program(trace);
  REQUIRE(program);
  CHECK(program->ranks.size() == 4);
}

TEST_CASE("processes with several GPUs each number their ranks one after the other",
          "[import][devices]") {
  SilentReporter silent;
  const TempFolder folder;
  const auto a = folder.write("a.json", document(process_of(2), 0, 2));
  const auto b = folder.write("b.json", document(process_of(2), 1, 2));
  const auto got = import_files({b, a}, {}, silent);
  if (!got) FAIL(got.error().message());
  REQUIRE(got->trace.ranks.size() == 4);
  CHECK(got->trace.header.world_size() == 4);
  CHECK(got->trace.ranks[3].gpu == 1);
  CHECK(got->findings.count("rank-twice") == 0);
  CHECK(got->findings.count("mixed-jobs") == 0);
}

TEST_CASE("members and roots of a framework's groups are processes, each with all of its GPUs",
          "[import][devices]") {
  std::string events;
  for (const int gpu : {0, 1}) {
    events +=
        event("kernel", "ncclDevKernel_Broadcast_RING_LL(x)", gpu, 9, 60,
              fmt::format(R"("device": {}, "stream": 9, "correlation": {}, )"
                          R"("Collective name": "broadcast", "Root Rank": 1, "dtype": "Float", )"
                          R"("In msg nelems": 8, "Out msg nelems": 8, "Group size": 2, )"
                          R"("Process Group Name": "0", "Process Group Ranks": "[0, 1]")",
                          gpu, gpu + 1));
  }
  events.pop_back();
  const auto got = import_text(document(events, 0, 2));
  if (!got) FAIL(got.error().message());
  REQUIRE(got->trace.ranks.size() == 2);
  for (const RankTrace& r : got->trace.ranks) {
    REQUIRE(r.ops.calls.size() == 1);
    const Call& call = r.ops.calls[0];
    CHECK(got->trace.communicators[call.communicator].members == std::vector<RankId>{0, 1, 2, 3});
    CHECK(call.peer == 2);
  }
}

TEST_CASE("a process with one communicating GPU stays one rank", "[import][devices]") {
  std::string events = process_of(1) + "," + launch(1, 80, 91) + work("copy_engine", 3, 7, 90, 91);
  events.pop_back();
  const auto got = import_text(document(events));
  if (!got) FAIL(got.error().message());
  REQUIRE(got->trace.ranks.size() == 1);
  CHECK(got->findings.count("several-devices") == 1);
  CHECK(got->findings.count("process-with-several-gpus") == 0);
}

TEST_CASE("a wait for a stream of another GPU keeps its recorded time", "[import][devices]") {
  std::string events = process_of(2) + ",";
  events += event("cuda_runtime", "cudaStreamSynchronize", 9, 1, 70, R"("correlation": 50)");
  events +=
      event("cuda_sync", "Stream Sync", 1, 9, 70,
            R"("correlation": 50, "device": 1, "stream": 9, "cuda_sync_kind": "Stream Sync")");
  events.pop_back();
  const auto got = import_text(document(events));
  if (!got) FAIL(got.error().message());
  REQUIRE(got->trace.ranks.size() == 2);
  CHECK(got->findings.count("waits-across-gpus") == 1);
  const auto there = find_op(*got, "cudaStreamSynchronize", 0);
  const auto here = find_op(*got, "cudaStreamSynchronize", 1);
  REQUIRE((there && here));
  CHECK(got->trace.ranks[0].ops.kind[*there] == OpKind::kHost);
  const Sync* sync = got->trace.ranks[1].ops.sync(*here);
  REQUIRE(sync);
  REQUIRE(sync->stream_lane >= 0);
  CHECK(got->trace.ranks[1].lanes[static_cast<size_t>(sync->stream_lane)].id == 9);
}

TEST_CASE("GPUs of one process in an Nsight Systems export are ranks too", "[import][devices]") {
  std::string sql;
  for (const int gpu : {0, 1}) {
    sql += runtime(11, 1, 5 + gpu, 100 + gpu, 110);
    sql += kernel(11, gpu, 7, 5 + gpu, 300 + gpu, 400, 3);
  }
  const auto got = import_text(database(nsys_tables() + sql), {}, "run.sqlite");
  if (!got) FAIL(got.error().message());
  REQUIRE(got->trace.ranks.size() == 2);
  for (const RankTrace& r : got->trace.ranks) {
    CHECK(r.gpu == r.rank);
    CHECK(r.ops.calls.size() == 1);
    CHECK(count_of(r, OpKind::kLaunch) == 2);
  }
  CHECK(got->findings.count("process-with-several-gpus") == 2);
}

TEST_CASE("more GPUs than a process can drive are not taken apart", "[import][devices]") {
  const auto got = import_text(document(process_of(200)));
  if (!got) FAIL(got.error().message());
  CHECK(got->trace.ranks.size() == 1);
  CHECK(got->findings.count("several-devices") == 199);
  const auto huge = import_text(document(process_of(100), 16'000'000, 16'000'001));
  if (!huge) FAIL(huge.error().message());
  CHECK(huge->trace.ranks.size() == 100);
}

}  // namespace rehearse::import_devices_test
