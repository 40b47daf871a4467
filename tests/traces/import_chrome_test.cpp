// SPDX-License-Identifier: Apache-2.0
// What tools other than PyTorch make of the same JSON, and what is left of it after a crash.
#include <catch2/catch.hpp>

#include "tests/traces/import_samples.hpp"

namespace rehearse::import_chrome_test {
using namespace rehearse;
using namespace rehearse::traces;
using samples::document;
using samples::find_op;
using samples::import_text;

namespace {

const std::string kKernel =
    R"js({"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 110.125, "dur": 20, "args": {"device": 0, "stream": 7, "correlation": 77}})js";

std::string begin(const std::string& name, double at, int tid = 1) {
  return R"({"ph": "B", "cat": "cpu_op", "name": ")" + name + R"(", "pid": 1, "tid": )" +
         std::to_string(tid) + R"(, "ts": )" + std::to_string(at) + "}";
}
std::string end(double at, int tid = 1) {
  return R"({"ph": "E", "pid": 1, "tid":  )" + std::to_string(tid) + R"( , "ts": )" +
         std::to_string(at) + "}";
}

}  // namespace

TEST_CASE("a begin and an end are one operation, innermost first", "[import][kineto]") {
  const auto got = import_text(document(
      kKernel + "," + begin("outer", 1) + "," + begin("other thread", 2, 2) + "," +
      begin("inner", 3) + "," + end(5) + "," + end(6, 2) + "," + end(9.5) +
      R"js(,{"ph": "B", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 100, "args": {"correlation": 77}})js" +
      "," + end(104)));
  REQUIRE(got);
  const RankTrace& rank = got->trace.ranks.at(0);
  CHECK(rank.ops.size() == 5);
  CHECK(rank.ops.duration[find_op(*got, "outer").value()] == 8'500);
  CHECK(rank.ops.duration[find_op(*got, "inner").value()] == 2'000);
  CHECK(rank.ops.duration[find_op(*got, "other thread").value()] == 4'000);
  const size_t launch = find_op(*got, "cudaLaunchKernel").value();
  CHECK(rank.ops.kind[launch] == OpKind::kLaunch);
  CHECK(rank.ops.duration[launch] == 4'000);
  for (const char* id : {"begin-without-end", "end-without-begin", "gpu-work-without-launch"}) {
    CHECK(got->findings.count(id) == 0);
  }
}

TEST_CASE("ends without a begin and begins without an end are counted", "[import][kineto]") {
  const auto got = import_text(document(kKernel + "," + end(1) + "," + begin("a", 2) + "," +
                                        begin("b", 3) + "," + begin("c", 4, 9)));
  REQUIRE(got);
  CHECK(got->trace.ranks.at(0).ops.size() == 1);
  CHECK(got->findings.count("end-without-begin") == 1);
  CHECK(got->findings.count("begin-without-end") == 3);
}

TEST_CASE("an end before its begin is a negative duration", "[import][kineto]") {
  const auto got = import_text(document(begin("a", 5) + "," + end(2)));
  REQUIRE(got);
  CHECK(got->findings.count("negative-duration") == 1);
}

TEST_CASE("begins without end take no memory without bound", "[import][kineto]") {
  std::string events = kKernel;
  for (int i = 0; i < 40; ++i) events += "," + begin(std::string(1 << 20, 'x'), i);
  const auto got = import_text(document(events));
  REQUIRE(got);
  CHECK(got->findings.count("too-many-open") + got->findings.count("begin-without-end") == 40);
  CHECK(got->findings.count("begin-without-end") < 17);
}

TEST_CASE("an array that is not closed is read, one that is cut is not", "[import][kineto]") {
  for (const std::string tail : {"", ",", ",\n", "\n"}) {
    const auto got = import_text("[" + kKernel + "," + kKernel + tail);
    REQUIRE(got);
    CHECK(got->trace.ranks.at(0).ops.size() == 2);
    CHECK(got->findings.count("array-not-closed") == 1);
  }
  const auto cut = import_text("[" + kKernel + "," + kKernel.substr(0, 40));
  REQUIRE_FALSE(cut);
  CHECK(cut.error().fix.find("--allow-truncated") != std::string::npos);
}

TEST_CASE("events on lines of their own are read like those of an array", "[import][kineto]") {
  const std::string launch =
      R"js({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 100, "dur": 4, "args": {"correlation": 77}})js";
  const std::string info =
      R"js({"schemaVersion": 1, "baseTimeNanoseconds": 1500000000000000000, "distributedInfo": {"rank": 3, "world_size": 4}})js";
  for (const std::string& text : {launch + "\n" + kKernel + "\n", launch + "\r\n\r\n" + kKernel,
                                  launch + ",\n" + kKernel + ",\n", launch + kKernel,
                                  "\n" + launch + "\n" + kKernel + "\n{}\n"}) {
    INFO(text);
    const auto got = import_text(text);
    REQUIRE(got);
    CHECK(got->inputs.at(0).format == "kineto");
    const RankTrace& rank = got->trace.ranks.at(0);
    REQUIRE(rank.ops.size() == 2);
    CHECK(rank.ops.duration[find_op(*got, "gemm").value()] == 20'000);
    CHECK(got->findings.count("gpu-work-without-launch") == 0);
  }
  // What Kineto puts around the events, on a line before, behind or both.
  for (const std::string& text :
       {info + "\n" + launch + "\n" + kKernel, launch + "\n" + kKernel + "\n" + info}) {
    const auto got = import_text(text);
    REQUIRE(got);
    CHECK(got->trace.ranks.at(0).rank == 3);
    CHECK(got->trace.header.world_size() == 4);
    CHECK(got->trace.ranks.at(0).ops.start[0] == 1'500'000'000'000'100'000);
  }
  const auto cut = import_text(launch + "\n" + kKernel.substr(0, 40));
  REQUIRE_FALSE(cut);
  CHECK(cut.error().what == "the file ends inside an event: 1 events are whole");
  const auto damaged = import_text(launch + "\n{\"ph\" \"X\"}\n" + kKernel);
  REQUIRE(damaged);
  CHECK(damaged->findings.count("event-unreadable") == 1);
}

TEST_CASE("what follows the end of a document is not lost in silence", "[import]") {
  const std::string events = "[" + kKernel + "]";
  const std::string timeline =
      R"js([{"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "grad"}}, {"ph": "B", "name": "NEGOTIATE_ALLREDUCE", "ts": 1, "pid": 1},
       {"ph": "X", "name": "0", "ts": 2, "pid": 1, "dur": 0}, {"ph": "E", "ts": 3, "pid": 1}, {"ph": "B", "name": "ALLREDUCE", "ts": 4, "pid": 1},
       {"ph": "E", "ts": 9, "pid": 1, "args": {"dtype": "float32", "shape": "[2]"}}])js";
  for (const std::string& text : {events, timeline}) {
    const auto alone = import_text(text + "\n");
    REQUIRE(alone);
    CHECK(alone->findings.count("trailing-content") == 0);
    const auto joined = import_text(text + "\n" + text + "\n");
    REQUIRE(joined);
    CHECK(joined->findings.count("trailing-content") == 1);
  }
}

TEST_CASE("kernels without a correlation id are said to have no launch", "[import][kineto]") {
  const auto got = import_text(document(
      R"js({"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 1, "dur": 2, "args": {"device": 0, "stream": 7}})js"));
  REQUIRE(got);
  CHECK(got->findings.count("gpu-work-without-launch") == 1);
}

TEST_CASE("the ranks of a group may be a list, and its size alone tells how many there are",
          "[import][kineto]") {
  const auto call = [](const std::string& group) {
    return R"js([{"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "pid": 0, "tid": 7,
      "ts": 1, "dur": 2, "args": {"device": 0, "stream": 7, "Collective name": "allreduce", "In msg nelems": 8, "dtype": "Float", )js" +
           group + "}}]";
  };
  const auto list = import_text(
      call(R"("Group size": 3, "Process Group Name": "5", "Process Group Ranks": [0, 2, 4])"));
  REQUIRE(list);
  CHECK(list->trace.communicators.at(0).members == std::vector<RankId>{0, 2, 4});
  CHECK(list->trace.header.world_size() == 5);
  const auto size = import_text(call(R"("Group size": 3)"));
  REQUIRE(size);
  CHECK(size->trace.header.world_size() == 3);
  CHECK(size->findings.count("ranks-missing") == 2);
}

TEST_CASE("numbers that are not JSON do not hide the rank", "[import][kineto]") {
  const auto got = import_text(
      R"js({"loss": NaN, "note": "NaN \"Infinity\\", "limits": [-Infinity, Infinity], "distributedInfo": {"rank": 3, "world_size": 4},
          "traceEvents": [{"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 1, "dur": NaN, "args": {"x": NaN, "device": 0, "stream": 7}}]})js");
  REQUIRE(got);
  CHECK(got->trace.ranks.at(0).rank == 3);
  CHECK(got->findings.count("event-without-duration") == 1);
  CHECK(got->findings.count("metadata-unreadable") == 0);
}

TEST_CASE("names that are not UTF-8 hide neither their event nor the rank", "[import][kineto]") {
  const auto got = import_text(
      "{\"host_name\": \"caf\xe9\", \"distributedInfo\": {\"rank\": 3, \"world_size\": 4}, "
      "\"traceEvents\": ["
      "{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"\xc3\xa9t\xe9\", \"pid\": 0, \"tid\": 7, "
      "\"ts\": 1, \"dur\": 2, "
      "\"args\": {\"device\": 0, \"stream\": 7}}]}");
  REQUIRE(got);
  CHECK(got->trace.ranks.at(0).rank == 3);
  CHECK(find_op(*got, "\xc3\xa9t\xef\xbf\xbd"));
  CHECK(got->findings.count("not-utf-8") == 1);
  CHECK(got->findings.count("metadata-unreadable") == 0);
  CHECK(got->findings.count("event-unreadable") == 0);
}

TEST_CASE("communication that does not go through NCCL is told", "[import][kineto]") {
  const auto got = import_text(document(
      R"js({"ph": "X", "cat": "kernel", "name": "void deep_ep::internode::dispatch<false, 8>(int4*)", "pid": 0, "tid": 7, "ts": 1, "dur": 2, "args": {"device": 0, "stream": 7}},
         {"ph": "X", "cat": "kernel", "name": "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 4>(x)", "pid": 0, "tid": 7, "ts": 5, "dur": 2, "args": {"device": 0, "stream": 7}},
         {"ph": "X", "cat": "kernel", "name": "void cutlass::reduce_kernel(x)", "pid": 0, "tid": 7, "ts": 8, "dur": 2, "args": {"device": 0, "stream": 7}},
         {"ph": "X", "cat": "user_annotation", "name": "gloo:all_reduce", "pid": 1, "tid": 1, "ts": 1, "dur": 9, "args": {}})js"));
  REQUIRE(got);
  CHECK(got->findings.count("communication-not-of-nccl") == 2);
  CHECK(got->findings.count("host-collectives") == 1);
}

TEST_CASE("a base time with an exponent is a base time", "[import][kineto]") {
  const auto got = import_text(
      R"js({"baseTimeNanoseconds": 1.5e18, "distributedInfo": {"rank": 0, "world_size": 1}, "traceEvents": [)js" +
      kKernel + "]}");
  REQUIRE(got);
  CHECK(got->trace.ranks.at(0).ops.start[0] == 1'500'000'000'000'110'125);
}

TEST_CASE("a file without a usable event says what its events lack", "[import][kineto]") {
  const auto got = import_text(document(
      R"js({"ph": "X", "name": "a", "pid": 1, "tid": 1, "ts": 1, "dur": 2}, {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "x"}})js"));
  REQUIRE_FALSE(got);
  CHECK(got.error().what == "none of its 2 events is an operation (1 event-without-category)");
  CHECK(got.error().fix.find("cat") != std::string::npos);
  // As the profiler that comes with NCCL's sources writes it: asynchronous events.
  const auto other = import_text(
      R"js([{"name": "AllReduce", "cat": "COLL", "ph": "b", "id": 0, "pid": 39, "tid": 1, "ts": 1.5, "args": {"SeqNum": 0, "Stream": 0x262ca50}},
           {"name": "AllReduce", "cat": "COLL", "ph": "e", "id": 0, "pid": 39, "tid": 1, "ts": 2.5}, {}])js");
  REQUIRE_FALSE(other);
  CHECK(other.error().what == "none of its 3 events is an operation (2 unused-phase)");
}

}  // namespace rehearse::import_chrome_test
