// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "tests/traces/import_samples.hpp"
#include "traces/import/limits.hpp"
#include "traces/import/names.hpp"

namespace rehearse::import_kineto_test {
using namespace rehearse;
using namespace rehearse::traces;
using samples::document;
using samples::find_op;
using samples::import_text;

namespace {

const char* const kLaunch =
    R"js({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 10, "tid": 11, "ts": 100.5, "dur": 4.25, "args": {"External id": 3, "cbid": 211, "correlation": 77}})js";
const char* const kKernel =
    R"js({"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 110.125, "dur": 20, "args": {"External id": 3, "device": 0, "context": 1, "stream": 7, "correlation": 77}})js";

const Call* call_of(const Imported& imported, const std::string& name, size_t rank = 0) {
  const auto op = find_op(imported, name, rank);
  return op ? imported.trace.ranks[rank].ops.call(*op) : nullptr;
}

}  // namespace

TEST_CASE("a launch and its kernel share a correlation id and keep exact times",
          "[import][kineto]") {
  const auto got = import_text(document(std::string(kKernel) + "," + kLaunch));
  REQUIRE(got);
  const RankTrace& rank = got->trace.ranks.at(0);
  REQUIRE(rank.ops.size() == 2);
  CHECK(rank.ops.kind[0] == OpKind::kLaunch);
  CHECK(rank.ops.start[0] == 100'500);
  CHECK(rank.ops.duration[0] == 4'250);
  CHECK(rank.ops.kind[1] == OpKind::kKernel);
  CHECK(rank.ops.start[1] == 110'125);
  CHECK(rank.ops.correlation[0] == rank.ops.correlation[1]);
  CHECK(rank.lanes.at(rank.ops.lane[1]).kind == LaneKind::kStream);
  CHECK(rank.lanes.at(rank.ops.lane[1]).id == 7);
  CHECK(rank.lanes.at(rank.ops.lane[0]).id == 11);
}

TEST_CASE("the layout of 2021 reads the same", "[import][kineto]") {
  const auto got = import_text(document(
      R"js({"ph": "X", "cat": "Kernel", "name": "k", "pid": 0, "tid": "stream 7", "ts": 1623143093553659, "dur": 2,
          "args": {"queued": 0, "device": 0, "stream": 7, "correlation": 160663, "external id": 24213}},
         {"ph": "X", "cat": "Runtime", "name": "cudaLaunchKernel", "pid": 25738, "tid": "25738",
          "ts": 1623143093553095, "dur": 2, "args": {"cbid": 135, "correlation": 160663}},
         {"ph": "X", "cat": "Operator", "name": "aten::empty", "pid": 25738, "tid": "25738",
          "ts": 1623143093496523, "dur": 21, "args": {"External id": 23648}},
         {"ph": "X", "cat": "Memcpy", "name": "Memcpy HtoD (Pageable -> Device)", "pid": 0, "tid": "stream 7",
          "ts": 1623143093700374, "dur": 1653, "args": {
  "device" : 0, "stream" : 7, "correlation" : 5, "bytes" : 19267584}},
         {"ph": "i", "s": "t", "name": "[memory]", "pid": 25738, "tid": 25738, "ts": 1623143093496534,
          "args": {"Device Type": 1, "Device Id": 0, "Bytes": 512}},
         {"ph": "s", "id": 160663, "pid": 25738, "tid": 25738, "ts": 1623143093553182, "cat": "async", "name": "launch"})js"));
  REQUIRE(got);
  const RankTrace& rank = got->trace.ranks.at(0);
  CHECK(rank.ops.size() == 5);
  const auto copy = find_op(*got, "Memcpy HtoD (Pageable -> Device)");
  REQUIRE(copy);
  CHECK(rank.ops.copy(*copy)->bytes == 19267584);
  CHECK(rank.ops.copy(*copy)->direction == CopyDirection::kHostToDevice);
  CHECK(rank.ops.start[*copy] == 1623143093700374000);
  CHECK(rank.ops.mem(*find_op(*got, "[memory]"))->bytes == 512);
  size_t streams = 0;
  for (const Lane& lane : rank.lanes) streams += lane.kind == LaneKind::kStream ? 1 : 0;
  CHECK(streams == 1);
  CHECK(rank.lanes.size() == 2);
}

TEST_CASE("the base time is added wherever it stands", "[import][kineto]") {
  const std::string events = std::string(R"js("traceEvents": [)js") + kKernel + "]";
  const std::string base = R"js("baseTimeNanoseconds": 1711964646000000000)js";
  for (const std::string& text :
       {"{" + base + "," + events + "}", "{" + events + "," + base + "}"}) {
    const auto got = import_text(text, {}, "rank0.json");
    REQUIRE(got);
    CHECK(got->trace.ranks[0].ops.start[0] == 1711964646000110125);
  }
}

TEST_CASE("a bare array of events is a trace too", "[import][kineto]") {
  const auto got = import_text(std::string("[") + kKernel + "]");
  REQUIRE(got);
  CHECK(got->trace.ranks[0].ops.size() == 1);
  CHECK(got->findings.count("rank-assumed") == 1);
}

TEST_CASE("arguments may stand before what they belong to", "[import][kineto]") {
  const auto got = import_text(document(
      R"js({"args": {"device": 1, "stream": 9, "correlation": 5}, "dur": 1, "ts": 2, "tid": 9, "pid": 1, "name": "k", "cat": "kernel", "ph": "X"})js"));
  REQUIRE(got);
  CHECK(got->trace.ranks[0].ops.correlation[0] == 5);
  CHECK(got->trace.ranks[0].gpu == 1);
}

TEST_CASE("a collective kernel carries its arguments", "[import][kineto]") {
  const std::string kernel =
      R"js({"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "pid": 0, "tid": 40, "ts": 10, "dur": 5,
      "args": {"device": 0, "stream": 40, "correlation": 1, "Collective name": "_allgather_base", "In msg nelems": 1024, "Out msg nelems": 4096,
      "Group size": 4, "dtype": "BFloat16", "Process Group Name": "7", "Process Group Description": "mesh_tp", "Process Group Ranks": "[4, 5, 6, 7]", "Seq": 12}})js";
  const auto got = import_text(document(kernel, 5, 8));
  REQUIRE(got);
  const Call* call =
      call_of(*got, "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)");
  REQUIRE(call);
  CHECK(call->collective == Collective::kAllGather);
  CHECK(call->bytes_in == 2048);
  CHECK(call->bytes_out == 8192);
  CHECK(call->dtype == DType::kBf16);
  const Communicator& group = got->trace.communicators.at(call->communicator);
  CHECK(group.id == "7");
  CHECK(group.members == std::vector<RankId>{4, 5, 6, 7});
  CHECK(got->trace.header.world_size() == 8);
  CHECK(got->findings.count("ranks-missing") == 7);
}

TEST_CASE("the root of a broadcast is the place that its kernel tells", "[import][kineto]") {
  const auto kernel = [](const char* what, int id) {
    return R"js({"ph": "X", "cat": "kernel", "name": "ncclDevKernel_Broadcast_RING_LL(x)", "pid": 0, "tid": 40, "ts": )js" +
           std::to_string(id * 10) + R"js(, "dur": 5,
      "args": {"device": 0, "stream": 40, "correlation": )js" +
           std::to_string(id) + R"js(, "Collective name": ")js" + what +
           R"js(", "In msg nelems": 8, "Out msg nelems": 8, "Group size": 4, "dtype": "Float",
      "Process Group Name": "7", "Process Group Ranks": "[4, 5, 6, 7]", "Rank": 2}})js";
  };
  const auto got =
      import_text(document(kernel("broadcast", 1) + "," + kernel("allreduce", 2), 5, 8));
  REQUIRE(got);
  const std::vector<Call>& calls = got->trace.ranks.at(0).ops.calls;
  REQUIRE(calls.size() == 2);
  CHECK(calls[0].peer == 2);
  CHECK(calls[1].peer == -1);
}

TEST_CASE("what is gathered of a group that cannot be is no more than a call has",
          "[import][kineto]") {
  for (const char* what : {"_allgather_base", "_reduce_scatter_base"}) {
    const bool gathers = what[1] == 'a';
    const auto got = import_text(document(
        std::string(
            R"js({"ph": "X", "cat": "kernel", "name": "ncclDevKernel_Generic(x)", "pid": 0, "tid": 40, "ts": 1,
            "dur": 5, "args": {"device": 0, "stream": 40, "correlation": 1, "dtype": "Float", "Group size": 9000000000000,
            "Collective name": ")js") +
        what +
        (gathers ? R"js(", "In msg nelems": 100000000000}})js"
                 : R"js(", "Out msg nelems": 100000000000}})js")));
    REQUIRE(got);
    REQUIRE(got->trace.ranks[0].ops.calls.size() == 1);
    const Call& call = got->trace.ranks[0].ops.calls[0];
    CHECK(gathered(400'000'000'000, 9'000'000'000'000) ==
          (gathers ? call.bytes_out : call.bytes_in));
    CHECK((gathers ? call.bytes_in : call.bytes_out) == 400'000'000'000);
  }
}

TEST_CASE("groups of which only the size is told are not the whole job", "[import][kineto]") {
  const auto call = [](int id, const char* what, int size) {
    return std::string(id > 1 ? "," : "") +
           R"js({"ph": "X", "cat": "kernel", "name": "ncclDevKernel_Generic(x)", "pid": 0, "tid": 40, "ts": )js" +
           std::to_string(id * 10) +
           R"js(, "dur": 5, "args": {"device": 0, "stream": 40, "correlation": )js" +
           std::to_string(id) + R"js(, "Collective name": ")js" + what +
           R"js(", "In msg nelems": 8, "Out msg nelems": 2, "dtype": "Float", "Group size": )js" +
           std::to_string(size) + "}}";
  };
  const auto got =
      import_text(document(call(1, "allreduce", 2) + call(2, "allreduce", 2) +
                               call(3, "_reduce_scatter_base", 4) + call(4, "barrier", 8),
                           5, 8));
  REQUIRE(got);
  const std::vector<Call>& calls = got->trace.ranks.at(0).ops.calls;
  REQUIRE(calls.size() == 4);
  const auto members = [&](size_t i) {
    return got->trace.communicators.at(calls[i].communicator).members;
  };
  CHECK(members(0) == std::vector<RankId>{4, 5});
  CHECK(calls[1].communicator == calls[0].communicator);
  CHECK(members(2) == std::vector<RankId>{1, 3, 5, 7});
  CHECK(members(3).size() == 8);
  CHECK(got->findings.count("members-assumed") == 2);
  // Listed once, however many calls there are.
  std::string many;
  for (int id = 1; id <= 20'000; ++id) many += call(id, "allreduce", 1 << 19);
  const auto large = import_text(document(many, 5, 1 << 20));
  REQUIRE(large);
  CHECK(large->trace.communicators.size() == 1);
}

TEST_CASE("an old collective gets its arguments from the host span around its launch",
          "[import][kineto]") {
  const auto got = import_text(document(
      R"js({"ph": "X", "cat": "cpu_op", "name": "record_param_comms", "pid": 1, "tid": 2, "ts": 100, "dur": 50, "args": {"External id": 9, "Input Dims": [[], []], "Input type": ["TensorList", "Scalar"]}},
         {"ph": "X", "cat": "user_annotation", "name": "nccl:all_to_all", "pid": 1, "tid": 2, "ts": 105, "dur": 40, "args": {"External id": 10, "Input Dims": [[6144]], "Input type": ["long int"]}},
         {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 2, "ts": 120, "dur": 5, "args": {"correlation": 55}},
         {"ph": "X", "cat": "kernel", "name": "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclWorkElem)", "pid": 0, "tid": 84, "ts": 130, "dur": 600, "args": {
  "External id" : 55, "device" : 0, "stream" : 84, "correlation" : 55}})js",
      0, 8));
  REQUIRE(got);
  const Call* call = call_of(*got, "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclWorkElem)");
  REQUIRE(call);
  CHECK(call->collective == Collective::kAllToAll);
  CHECK(call->bytes_in == 6144 * 8);
  CHECK(call->dtype == DType::kInt64);
  CHECK(got->trace.communicators.at(call->communicator).members.size() == 8);
  CHECK(got->findings.count("sendrecv-assumed-all-to-all") == 0);
}

TEST_CASE("the operator that told a collective in 2021 gives its size", "[import][kineto]") {
  const auto got = import_text(document(
      R"js({"ph": "X", "cat": "Operator", "name": "nccl:all_reduce", "pid": 1, "tid": "2", "ts": 160, "dur": 75, "args": {"External id": 2513, "Input Dims": [[2000]], "Input type": ["float"]}},
         {"ph": "X", "cat": "Kernel", "name": "ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)", "pid": 0, "tid": "stream 16", "ts": 162, "dur": 1556, "args": {"device": 0, "stream": 16, "correlation": 33218, "external id": 2513}})js",
      0, 2));
  REQUIRE(got);
  const Call* call = call_of(*got, "ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)");
  REQUIRE(call);
  CHECK(call->bytes_in == 8000);
  CHECK(call->dtype == DType::kFp32);
}

TEST_CASE("cut lists of ranks are completed from pg_config", "[import][kineto]") {
  const auto got = import_text(
      R"js({"distributedInfo": {"rank": 0, "world_size": 4, "backend": "nccl", "nccl_version": "2.21.5", "pg_config": [
          {"pg_name": "0", "pg_desc": "default_pg", "backend_config": "cuda:nccl", "pg_size": 4, "ranks": [0, 1, 2, 3]},
          {"pg_name": "3", "pg_desc": "dp", "backend_config": "cuda:nccl", "pg_size": 2, "ranks": [0, 2]}]},
      "traceEvents": [{"ph": "X", "cat": "kernel", "name": "ncclDevKernel_Generic(x)", "pid": 0, "tid": 1, "ts": 1, "dur": 1,
      "args": {
  "stream" : 1, "device" : 0, "correlation" : 1,
      "Collective name" : "allreduce",
                          "dtype" : "Float",
                                    "In msg nelems" : 8,
                                    "Out msg nelems" : 8,
                                    "Process Group Name" : "3",
                                                           "Process Group Ranks" : "[0, ...]",
                                                                                   "Group size" : 2}}]
})js");
  REQUIRE(got);
  const Call* call = call_of(*got, "ncclDevKernel_Generic(x)");
  REQUIRE(call);
  CHECK(call->collective == Collective::kAllReduce);
  CHECK(got->trace.communicators.at(call->communicator).members == std::vector<RankId>{0, 2});
  CHECK(got->trace.header.nccl_version() == "2.21.5");
}

TEST_CASE("cuda_sync tells what waits for which event", "[import][kineto]") {
  const auto got = import_text(document(
      R"js({"ph": "X", "cat": "kernel", "name": "a", "pid": 0, "tid": 20, "ts": 1, "dur": 1, "args": {"device": 0, "stream": 20, "correlation": 1}},
         {"ph": "X", "cat": "kernel", "name": "b", "pid": 0, "tid": 24, "ts": 9, "dur": 1, "args": {"device": 0, "stream": 24, "correlation": 2}},
         {"ph": "X", "cat": "cuda_runtime", "name": "cudaEventRecord", "pid": 1, "tid": 1, "ts": 2, "dur": 1, "args": {"correlation": 1385}},
         {"ph": "X", "cat": "cuda_runtime", "name": "cudaStreamWaitEvent", "pid": 1, "tid": 1, "ts": 3, "dur": 1, "args": {"correlation": 1389}},
         {"ph": "X", "cat": "cuda_runtime", "name": "cudaDeviceSynchronize", "pid": 1, "tid": 1, "ts": 10, "dur": 1, "args": {"correlation": 1400}},
         {"ph": "X", "cat": "cuda_sync", "name": "Stream Wait Event", "pid": 0, "tid": 24, "ts": 3, "dur": 2, "args": {"cuda_sync_kind": "Stream Wait Event",
          "wait_on_stream": 20, "wait_on_cuda_event_record_corr_id": 1385, "wait_on_cuda_event_id": 19, "stream": 24, "correlation": 1389, "device": 0}})js"));
  REQUIRE(got);
  const RankTrace& rank = got->trace.ranks[0];
  const Sync* record = rank.ops.sync(*find_op(*got, "cudaEventRecord"));
  const Sync* wait = rank.ops.sync(*find_op(*got, "cudaStreamWaitEvent"));
  REQUIRE(record);
  REQUIRE(wait);
  CHECK(record->sync == SyncKind::kRecord);
  CHECK(record->event == 19);
  CHECK(rank.lanes.at(static_cast<size_t>(record->stream_lane)).id == 20);
  CHECK(wait->sync == SyncKind::kWaitEvent);
  CHECK(wait->event == 19);
  CHECK(rank.lanes.at(static_cast<size_t>(wait->stream_lane)).id == 24);
  CHECK(rank.ops.sync(*find_op(*got, "cudaDeviceSynchronize"))->sync == SyncKind::kDevice);
}

TEST_CASE("profiler steps are kept, and found by period where there are none", "[import][kineto]") {
  const auto marked = import_text(document(
      R"js({"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#12", "pid": 1, "tid": 1, "ts": 50, "dur": 40, "args": {}},
         {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#11", "pid": 1, "tid": 1, "ts": 10, "dur": 40, "args": {}})js"));
  REQUIRE(marked);
  REQUIRE(marked->trace.ranks[0].steps.size() == 2);
  CHECK(marked->trace.ranks[0].steps[0].number == 11);
  CHECK(marked->trace.ranks[0].steps[1].end == 90'000);

  // Ranges that a script named, of the surest name; those of the profiler itself come before them.
  const auto range = [](const char* name, int at, int length) {
    return R"js({"ph": "X", "cat": "user_annotation", "name": ")js" + std::string(name) +
           R"js(", "pid": 1, "tid": 1, "ts": )js" + std::to_string(at) +
           ", \"dur\": " + std::to_string(length) + ", \"args\": {}}";
  };
  const std::string ranges = range("train_step 7", 10, 40) + "," + range("batch 1", 11, 5) + "," +
                             range("train_step 8", 50, 40) + "," + range("optimizer", 80, 5);
  const auto named = import_text(document(ranges));
  REQUIRE(named);
  REQUIRE(named->trace.ranks[0].steps.size() == 2);
  CHECK(named->trace.ranks[0].steps[1].number == 8);
  const auto both = import_text(document(ranges + "," + range("ProfilerStep#3", 0, 100)));
  REQUIRE(both);
  REQUIRE(both->trace.ranks[0].steps.size() == 1);
  CHECK(both->trace.ranks[0].steps[0].number == 3);

  std::string events;
  for (int i = 0; i < 9; ++i) {
    events +=
        std::string(i > 0 ? "," : "") +
        R"js({"ph": "X", "cat": "kernel", "name": "ncclKernel_AllReduce_RING_LL_Sum_float(x)", "pid": 0, "tid": 4, "ts": )js" +
        std::to_string(i * 100) +
        R"js(, "dur": 9, "args": {"device": 0, "stream": 4, "correlation": )js" +
        std::to_string(i + 1) +
        R"js(, "Collective name": "allreduce", "dtype": "Float", "In msg nelems": )js" +
        std::to_string(1000 + i % 3) + "}}";
  }
  const auto periodic = import_text(document(events, 0, 2));
  REQUIRE(periodic);
  REQUIRE(periodic->trace.ranks[0].steps.size() == 2);
  CHECK(periodic->trace.ranks[0].steps[1].start == 300'000);
  CHECK(periodic->findings.count("steps-inferred") == 1);
}

TEST_CASE("what cannot be used is counted with its first place", "[import][kineto]") {
  const auto got = import_text(document(
      std::string(kKernel) +
      R"js(,{"ph": "X", "cat": "kernel", "name": "back", "pid": 0, "tid": 7, "ts": 5, "dur": -3, "args": {"device": 0, "stream": 7, "correlation": 78}},
         {"ph": "X", "cat": "quantum", "name": "q", "pid": 0, "tid": 7, "ts": 5, "dur": 3},
         {"ph": "X", "cat": "quantum", "name": "q", "pid": 0, "tid": 7, "ts": 6, "dur": 3},
         {"ph": "X", "cat": "cpu_op", "name": "timeless", "pid": 0, "tid": 7, "ts": "soon", "dur": 3},
         {"ph": "X", "cat": "cpu_op", "name": "endless", "pid": 1, "tid": 7, "ts": 4},
         {"ph": "X", "cat": ["cpu_op"], "name": {"a": 1}, "pid": [], "tid": {}, "ts": [1], "dur": null, "args": 3},
         17, "text", null, {"broken: 1}"}, {}, {"ph": 5},
         {"ph": "X", "cat": "gpu_user_annotation", "name": "g", "pid": 0, "tid": 7, "ts": 5, "dur": 3})js"));
  REQUIRE(got);
  CHECK(got->findings.count("negative-duration") == 1);
  CHECK(got->findings.count("unknown-category") == 3);
  CHECK(got->findings.count("event-without-time") == 1);
  CHECK(got->findings.count("event-without-duration") == 1);
  CHECK(got->findings.count("event-not-an-object") == 3);
  CHECK(got->findings.count("gpu-annotations") == 1);
  CHECK(got->trace.ranks[0].ops.duration[*find_op(*got, "back")] == 0);
  for (const Finding& f : got->findings.rows()) {
    if (f.id == "negative-duration") CHECK_THAT(f.first, Catch::Contains("event 1"));
    CHECK_FALSE(f.advice.empty());
  }
  CHECK(got->trace.header.findings_size() == static_cast<int>(got->findings.rows().size()));
}

TEST_CASE("duplicate correlation ids and unlaunched kernels are told", "[import][kineto]") {
  const auto got = import_text(document(
      std::string(kLaunch) + "," + kLaunch + "," + kKernel +
      R"js(,{"ph": "X", "cat": "kernel", "name": "orphan", "pid": 0, "tid": 7, "ts": 5, "dur": 3, "args": {"device": 0, "stream": 7, "correlation": 9999}})js"));
  REQUIRE(got);
  CHECK(got->findings.count("duplicate-correlation") == 1);
  CHECK(got->findings.count("gpu-work-without-launch") == 1);
}

TEST_CASE("unknown element types leave the size open", "[import][kineto]") {
  const auto got = import_text(document(
      R"js({"ph": "X", "cat": "kernel", "name": "ncclKernel_AllReduce_RING(x)", "pid": 0, "tid": 4, "ts": 1, "dur": 9,
      "args": {
  "device" : 0, "stream" : 4, "correlation" : 3,
      "Collective name" : "allreduce", "dtype" : "Quaternion", "In msg nelems" : 1000}})js",
      0, 2));
  REQUIRE(got);
  CHECK(got->findings.count("unknown-dtype") == 1);
  CHECK(got->findings.count("collective-without-size") == 1);
}

TEST_CASE("element types are as wide as they are, with a name in NCCL or without",
          "[import][kineto]") {
  for (const auto& [name, bytes] : {std::pair<const char*, int>{"Float8_e4m3fnuz", 1},
                                    {"Float8_e5m2", 1},
                                    {"Float4_e2m1fn_x2", 1},
                                    {"c10::Half", 2},
                                    {"Short", 2},
                                    {"UInt16", 2},
                                    {"BFloat16", 2},
                                    {"torch.int32", 4},
                                    {"ComplexHalf", 4},
                                    {"ComplexFloat", 8},
                                    {"Tensor(long int)", 8},
                                    {"ComplexDouble", 16},
                                    {"Quaternion", 0}}) {
    INFO(name);
    CHECK(element_bytes(name) == bytes);
  }
  CHECK(dtype_of("Float8_e8m0fnu") == DType::kFp8);
  CHECK(dtype_of("Short") == DType::kUnknown);
  const auto got = import_text(document(
      R"js({"ph": "X", "cat": "kernel", "name": "ncclKernel_AllReduce_RING(x)", "pid": 0, "tid": 4, "ts": 1, "dur": 9,
      "args": {"device": 0, "stream": 4, "correlation": 3, "Collective name": "allreduce", "dtype": "ComplexFloat", "In msg nelems": 1000}})js",
      0, 2));
  REQUIRE(got);
  CHECK(got->findings.count("unknown-dtype") == 0);
  CHECK(got->trace.ranks[0].ops.calls[0].bytes_in == 8000);
}

TEST_CASE("kernels of NCCL are known by every spelling of their names", "[import][kineto]") {
  for (const char* name :
       {"ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
        "ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)",
        "ncclSymkDevKernel_AllReduce_AGxLL_R",
        "_Z39ncclDevKernel_AllReduce_Sum_f32_RING_LL24ncclDevKernelArgsStorageILm4096EE",
        "ncclDevKernel_Generic_4(ncclDevKernelArgsStorage<4096ul>)",
        "void rcclGenericKernel<1, false>(ncclDevComm*)", "mscclKernel_Sum_half_Simple_false",
        "void ncclKernel<int>(int)"}) {
    INFO(name);
    CHECK(is_nccl_kernel(name));
  }
  for (const char* name :
       {"void at::native::reduce_kernel<512>", "_Z6gemm_tPKf", "nccl", "ncclx"}) {
    INFO(name);
    CHECK_FALSE(is_nccl_kernel(name));
  }
}

TEST_CASE("every category that Kineto writes is known", "[import][kineto]") {
  std::string events = kKernel;
  const auto add = [&](const char* category) {
    events +=
        std::string(R"js(,{"ph": "X", "cat": ")js") + category +
        R"js(", "name": "x", "pid": 1, "tid": 1, "ts": 5, "dur": 3, "args": {"correlation": 3}})js";
  };
  for (const char* runtime : {"xpu_driver", "privateuse1_driver", "hpu_op", "glow_runtime"}) {
    add(runtime);
  }
  for (const char* record : {"cuda_event", "xpu_sync"}) add(record);
  for (const char* counter : {"mtia_insight", "mtia_counters", "xpu_scope_profiler"}) add(counter);
  add("external_correlation");
  const auto got = import_text(document(events));
  REQUIRE(got);
  CHECK(got->findings.count("unknown-category") == 0);
  CHECK(got->findings.count("event-records") == 2);
  CHECK(got->findings.count("profiler-ranges") == 3);
  CHECK(got->trace.ranks[0].ops.size() == 5);
}

TEST_CASE("profiles of before Kineto tell host and GPU by the name of the process",
          "[import][kineto]") {
  const auto got = import_text(
      R"js([{"name": "aten::mm", "ph": "X", "ts": 10.5, "dur": 30.0, "tid": 1, "pid": "CPU functions", "args": {}},
{"name": "aten::mm", "ph": "s", "ts": 10.5, "tid": 1, "pid": "CPU functions", "id": 0, "cat": "cpu_to_cuda", "args": {}},
{"name": "gemm", "ph": "f", "ts": 20.0, "tid": 0, "pid": "CUDA functions", "id": 0, "cat": "cpu_to_cuda", "args": {}},
{"name": "gemm", "ph": "X", "ts": 20.0, "dur": 5.5, "tid": 0, "pid": "CUDA functions", "args": {}},
{"name": "aten::add", "ph": "X", "ts": 50, "dur": 3, "tid": " node_id:1, thread_id:2 ", "pid": "CPU functions", "args": {}}])js");
  REQUIRE(got);
  const RankTrace& rank = got->trace.ranks.at(0);
  CHECK(samples::count_of(rank, OpKind::kHost) == 2);
  CHECK(samples::count_of(rank, OpKind::kKernel) == 1);
  CHECK(rank.ops.duration[*find_op(*got, "gemm")] == 5'500);
  CHECK(got->findings.count("profile-without-kineto") == 3);
  CHECK(got->findings.count("event-without-category") == 0);
}

TEST_CASE("graph launches share their correlation with many kernels", "[import][kineto]") {
  const auto got = import_text(document(
      R"js({"ph": "X", "cat": "cuda_runtime", "name": "cudaGraphLaunch", "pid": 1, "tid": 1, "ts": 1, "dur": 1, "args": {"correlation": 8}},
         {"ph": "X", "cat": "kernel", "name": "a", "pid": 0, "tid": 7, "ts": 5, "dur": 3, "args": {"device": 0, "stream": 7, "correlation": 8, "graph id": 1, "graph node id": 4}},
         {"ph": "X", "cat": "kernel", "name": "b", "pid": 0, "tid": 7, "ts": 9, "dur": 3, "args": {"device": 0, "stream": 7, "correlation": 8, "graph id": 1, "graph node id": 5}})js"));
  REQUIRE(got);
  CHECK(samples::count_of(got->trace.ranks[0], OpKind::kGraphLaunch) == 1);
  CHECK(got->findings.count("gpu-work-without-launch") == 0);
  CHECK(got->findings.count("duplicate-correlation") == 0);
}

TEST_CASE("the driver's and AMD's calls launch too", "[import][kineto]") {
  const auto got = import_text(document(
      R"js({"ph": "X", "cat": "cuda_driver", "name": "cuLaunchKernelEx", "pid": 1, "tid": 1, "ts": 1, "dur": 1, "args": {"correlation": 8}},
         {"ph": "X", "cat": "cuda_runtime", "name": "hipExtModuleLaunchKernel", "pid": 1, "tid": 1, "ts": 2, "dur": 1, "args": {"cid": 1, "correlation": 9}},
         {"ph": "X", "cat": "cuda_runtime", "name": "hipSomethingNew", "pid": 1, "tid": 1, "ts": 3, "dur": 1, "args": {"correlation": 10}},
         {"ph": "X", "cat": "kernel", "name": "k", "pid": 2, "tid": 0, "ts": 5, "dur": 3, "args": {"device": 2, "stream": 0, "correlation": 10, "kind": "Dispatch Kernel"}},
         {"ph": "X", "cat": "cuda_runtime", "name": "hipFree", "pid": 1, "tid": 1, "ts": 4, "dur": 1, "args": {"correlation": 11}})js"));
  REQUIRE(got);
  CHECK(samples::count_of(got->trace.ranks[0], OpKind::kLaunch) == 3);
  CHECK(samples::count_of(got->trace.ranks[0], OpKind::kHost) == 1);
  CHECK(got->trace.ranks[0].gpu == 2);
}

}  // namespace rehearse::import_kineto_test
