// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "tests/traces/damage.hpp"
#include "tests/traces/import_samples.hpp"
#include "traces/export/wire_text.hpp"
#include "traces/import/tensorflow/planes.hpp"
#include "traces/import/tensorflow/tensorflow.hpp"

namespace rehearse::import_tensorflow_test {
using namespace rehearse;
using namespace rehearse::traces;
using samples::find_op;
using samples::import_text;

namespace {

// An XPlane; dictionaries stand behind the lines, as TensorFlow writes them.
class XPlane {
 public:
  explicit XPlane(const std::string& name) { put_bytes(out_, 2, name); }

  struct Stat {
    std::string name;
    int64_t number = 0;
    std::string ref{};
  };
  void event(const std::string& name, int64_t offset_ps, int64_t duration_ps,
             const std::vector<Stat>& stats = {}) {
    std::string e;
    put_number(e, 1, id(events_, name));
    put_number(e, 2, static_cast<uint64_t>(offset_ps));
    put_number(e, 3, static_cast<uint64_t>(duration_ps));
    for (const Stat& s : stats) put_bytes(e, 4, encoded(s));
    put_bytes(line_, 4, e);
  }
  void aggregated(const std::string& name, int64_t occurrences) {
    std::string e;
    put_number(e, 1, id(events_, name));
    put_number(e, 5, static_cast<uint64_t>(occurrences));
    put_bytes(line_, 4, e);
  }
  // Begins a line; the events after it are on it.
  void line(int64_t number, const std::string& name, int64_t timestamp_ns) {
    close();
    put_number(line_, 1, static_cast<uint64_t>(number));
    put_bytes(line_, 2, name);
    put_number(line_, 3, static_cast<uint64_t>(timestamp_ns));
  }
  void stat(const Stat& s) { own_.push_back(encoded(s)); }
  [[nodiscard]] std::string bytes() {
    close();
    for (const auto& [name, number] : events_) put_bytes(out_, 4, entry(number, name));
    for (const auto& [name, number] : stats_) put_bytes(out_, 5, entry(number, name));
    for (const std::string& s : own_) put_bytes(out_, 6, s);
    put_bytes(out_, 77, "a field to come");
    return out_;
  }

 private:
  static uint64_t id(std::map<std::string, uint64_t>& table, const std::string& name) {
    return table.emplace(name, table.size() + 1).first->second;
  }
  std::string encoded(const Stat& s) {
    std::string out;
    put_number(out, 1, id(stats_, s.name));
    if (s.ref.empty()) {
      put_number(out, 4, static_cast<uint64_t>(s.number));
    } else {
      put_number(out, 7, id(stats_, s.ref));
    }
    return out;
  }
  static std::string entry(uint64_t number, const std::string& name) {
    std::string value, out;
    put_number(value, 1, number);
    put_bytes(value, 2, name);
    put_number(out, 1, number);
    put_bytes(out, 2, value);
    return out;
  }
  void close() {
    if (!line_.empty()) put_bytes(out_, 3, line_);
    line_.clear();
  }
  std::string out_, line_;
  std::map<std::string, uint64_t> events_, stats_;
  std::vector<std::string> own_;
};

constexpr int64_t kUs = 1'000'000;  // picoseconds

// Two GPUs, a thread that launches on both, a Python thread with two steps.
std::string xspace(int64_t timestamp = 1000, bool relative = true) {
  std::string out;
  for (int gpu = 0; gpu < 2; ++gpu) {
    XPlane plane(fmt::format("/device:GPU:{}", gpu));
    plane.stat({"memory_size", int64_t{80} << 30});
    plane.line(14, "Stream #14(Kernel,Memcpy)", timestamp);
    plane.event("gemm", 100 * kUs, 20 * kUs + 500, {{"correlation_id", 10 + gpu}});
    plane.event("MemcpyH2D", 150 * kUs, 5 * kUs,
                {{"memcpy_details", 0, "kind_src:host kind_dst:device size:4096 dest:0 async:1"}});
    plane.event("Memset", 160 * kUs, kUs, {{"memset_details", 0, "kind:device size:64"}});
    plane.line(20, "Stream #20(Kernel)", timestamp);
    plane.event("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
                200 * kUs, 30 * kUs, {{"correlation_id", 20 + gpu}});
    plane.line(3, "XLA Ops", timestamp);
    plane.event("fusion.1", 100 * kUs, 20 * kUs);
    put_bytes(out, 1, plane.bytes());
  }
  XPlane host("/host:CPU");
  host.line(7, "worker", timestamp);
  host.event("cuLaunchKernel", 90 * kUs, 5 * kUs, {{"correlation_id", 10}});
  host.event("cuLaunchKernel", 95 * kUs, 5 * kUs, {{"correlation_id", 11}});
  host.event("cuLaunchKernel", 190 * kUs, 5 * kUs, {{"correlation_id", 20}});
  host.event("cuStreamSynchronize", 196 * kUs, 5 * kUs, {{"correlation_id", 99}});
  host.line(8, "python", timestamp);
  host.event("train", 80 * kUs, 100 * kUs, {{"step_num", 0}});
  host.event("train", 180 * kUs, 100 * kUs, {{"step_num", 1}});
  put_bytes(out, 1, host.bytes());
  XPlane task("Task Environment");
  if (relative) task.stat({"profile_start_time", 1'771'595'639'214'724'894});
  put_bytes(out, 1, task.bytes());
  put_bytes(out, 4, "node7");
  return out;
}

Imported imported(const std::string& bytes, const std::string& name = "host.xplane.pb") {
  auto got = import_text(bytes, {.clocks = ClockAlignment::kAsRecorded}, name);
  if (!got) FAIL(got.error().message());
  return std::move(*got);
}

}  // namespace

TEST_CASE("every GPU of an XSpace is a rank with its launches", "[import][tensorflow]") {
  const Imported got = imported(xspace());
  REQUIRE(got.trace.ranks.size() == 2);
  CHECK(got.trace.header.framework() == "tensorflow");
  const RankTrace& first = got.trace.ranks[0];
  const RankTrace& second = got.trace.ranks[1];
  CHECK(first.host == "node7");
  CHECK(second.gpu == 1);
  CHECK(second.gpu_memory == Bytes{80} << 30);
  CHECK(samples::count_of(first, OpKind::kKernel) == 1);
  CHECK(samples::count_of(first, OpKind::kCopy) == 1);
  CHECK(samples::count_of(first, OpKind::kMemset) == 1);
  CHECK(samples::count_of(first, OpKind::kCall) == 1);
  CHECK(samples::count_of(first, OpKind::kLaunch) == 2);
  CHECK(samples::count_of(second, OpKind::kLaunch) == 1);  // from the thread of the other
  CHECK(samples::count_of(first, OpKind::kSync) == 1);
  CHECK(first.ops.copies.at(0).bytes == 4096);
  CHECK(first.ops.copies.at(0).direction == CopyDirection::kHostToDevice);
  REQUIRE(first.steps.size() == 2);
  CHECK(first.steps[1].number == 1);
  CHECK(got.findings.count("derived-events") == 2);
  CHECK(got.findings.count("collective-without-size") == 2);
  const size_t gemm = *find_op(got, "gemm");
  CHECK(first.ops.start[gemm] == 1'771'595'639'214'724'894 + 1000 + 100'000);
  CHECK(first.ops.duration[gemm] == 20'000);
}

TEST_CASE("times since 1970 stay as they are", "[import][tensorflow]") {
  const Imported got = imported(xspace(1'700'000'000'000'000'000));
  CHECK(got.trace.ranks[0].ops.start[*find_op(got, "gemm")] == 1'700'000'000'000'100'000);
}

TEST_CASE("XSpace events that tell no time are counted", "[import][tensorflow]") {
  XPlane plane("/device:GPU:0");
  plane.line(1, "Stream #1", 0);
  plane.event("k", 5, -7);
  plane.event("k", 10 * kUs, kUs);
  plane.event("k", INT64_MAX, kUs);
  plane.aggregated("k", 17);
  std::string bytes;
  put_bytes(bytes, 1, plane.bytes());
  const Imported got = imported(bytes);
  CHECK(got.trace.operations() == 3);
  CHECK(got.findings.count("negative-duration") == 1);
  CHECK(got.findings.count("aggregated-events") == 1);
}

TEST_CASE("planes and lines are known by name", "[import][tensorflow]") {
  using namespace tensorflow;
  CHECK(plane_of("/device:GPU:12").device == 12);
  CHECK(plane_of("/device:TPU:0").tpu);
  CHECK(plane_of("/device:CUSTOM:Megascale Trace").kind == PlaneKind::kOther);
  CHECK(plane_of("/host:CUPTI").kind == PlaneKind::kHost);
  CHECK(plane_of("/host:metadata").kind == PlaneKind::kOther);
  CHECK(device_line_of({}, "Stream #17(Kernel)", 4).stream == 17);
  CHECK(device_line_of({}, "TensorFlow Ops", 4).use == LineUse::kDerived);
  CHECK(device_line_of({}, "XLA Ops", 4).use == LineUse::kDerived);
  CHECK(copy_of("x", "kind:D2H size:12 dest:0").direction == CopyDirection::kDeviceToHost);
  CHECK(copy_of("x", "kind_src:device kind_dst:pageable size:99").direction ==
        CopyDirection::kDeviceToHost);
  CHECK(copy_of("MemcpyD2D", "").direction == CopyDirection::kDeviceToDevice);
}

TEST_CASE("the trace viewer's JSON is told from Kineto by content", "[import][tensorflow]") {
  const std::string text =
      R"json({"displayTimeUnit":"ns","metadata":{"highres-ticks":true},"traceEvents":[
{"ph":"M","pid":1,"name":"process_name","args":{"name":"/device:GPU:0"}},
{"ph":"M","pid":1,"tid":17,"name":"thread_name","args":{"name":"Stream #17(Kernel)"}},
{"ph":"M","pid":1,"tid":2,"name":"thread_name","args":{"name":"TensorFlow Ops"}},
{"ph":"M","pid":1,"tid":3,"name":"thread_name","args":{"name":"Steps"}},
{"ph":"M","pid":49,"name":"process_name","args":{"name":"/host:CPU"}},
{"pid":1,"tid":17,"ts":20.5,"dur":3.25,"name":"gemm","ph":"X","args":{"correlation_id":"7"}},
{"pid":1,"tid":2,"ts":20.5,"dur":3.25,"name":"MatMul","ph":"X"},
{"pid":1,"tid":3,"ts":10,"dur":20,"name":"4","ph":"X"},
{"pid":49,"tid":5,"ts":12,"dur":2,"name":"cuLaunchKernel","ph":"X","args":{"correlation_id":7}},
{"pid":49,"tid":5,"ts":15,"dur":-2,"name":"op","ph":"X"},
{"pid":49,"tid":5,"dur":2,"name":"op","ph":"X"},
{"ph":"C"},
{}]})json";
  CHECK(tensorflow::sniff_trace_json(text));
  const Imported got = imported(text, "host.trace.json");
  const RankTrace& rank = got.trace.ranks.at(0);
  CHECK(rank.ops.size() == 3);
  const size_t gemm = *find_op(got, "gemm");
  CHECK(rank.ops.start[gemm] == 20'500);
  CHECK(rank.ops.duration[gemm] == 3'250);
  CHECK(rank.ops.kind[*find_op(got, "cuLaunchKernel")] == OpKind::kLaunch);
  REQUIRE(rank.steps.size() == 1);
  CHECK(rank.steps[0].number == 4);
  CHECK(got.findings.count("derived-events") == 1);
  CHECK(got.findings.count("negative-duration") == 1);
  CHECK(got.findings.count("event-without-time") == 1);
  CHECK(got.findings.count("unused-phase") == 1);

  CHECK_FALSE(tensorflow::sniff_trace_json(samples::document("")));
  samples::check_cuts(text, "host.trace.json", samples::Ends::kMarked);
  samples::check_flips(text, "host.trace.json");
}

TEST_CASE("the timeline of a TensorFlow 1 session is read", "[import][tensorflow]") {
  const auto timeline = [](const std::string& streams) {
    return R"json({"traceEvents": [
{"name": "process_name", "ph": "M", "pid": 0, "args": {"name": "/job:localhost/replica:0/task:0/device:CPU:0 Compute"}},
{"name": "process_name", "ph": "M", "pid": 1, "args": {"name": "/job:localhost/replica:0/task:0/device:GPU:0 Compute"}},
{"name": "process_name", "ph": "M", "pid": 2, "args": {"name": "/device:GPU:0/stream:all Compute"}},
{"name": "process_name", "ph": "M", "pid": 3, "args": {"name": "/device:GPU:0/memcpy Compute"}},
{"name": "process_name", "ph": "M", "pid": 4, "args": {"name": "/job:localhost/replica:0/task:0/device:GPU:0 Tensors"}},
)json" + streams +
           R"json(
{"name": "MatMul", "cat": "Op", "ph": "X", "pid": 1, "tid": 0, "ts": 1500000000000010, "dur": 5, "args": {"name": "dense/MatMul", "op": "MatMul"}},
{"name": "NoOp", "cat": "Op", "ph": "X", "pid": 0, "tid": 0, "ts": 1500000000000001, "dur": 2, "args": {}},
{"name": "MatMul", "cat": "Op", "ph": "X", "pid": 2, "tid": 1, "ts": 1500000000000020, "dur": 30, "args": {}},
{"name": "MEMCPYHtoD", "cat": "Op", "ph": "X", "pid": 3, "tid": 0, "ts": 1500000000000005, "dur": 4, "args": {}},
{"name": "x", "cat": "Tensor", "ph": "N", "pid": 4, "tid": 0, "ts": 1500000000000005, "id": 3}]})json";
  };
  const std::string together = timeline("");
  CHECK(tensorflow::sniff_trace_json(together));
  const Imported shared = imported(together, "timeline.json");
  const RankTrace& rank = shared.trace.ranks.at(0);
  CHECK(samples::count_of(rank, OpKind::kKernel) == 1);
  CHECK(samples::count_of(rank, OpKind::kHost) == 2);
  REQUIRE(samples::count_of(rank, OpKind::kCopy) == 1);
  CHECK(rank.ops.copy(*find_op(shared, "MEMCPYHtoD"))->direction == CopyDirection::kHostToDevice);
  CHECK(shared.findings.count("no-gpu-work") == 0);
  CHECK(shared.findings.count("unused-phase") == 1);

  // Where streams are there one by one, what all share tells them again.
  const Imported apart = imported(
      timeline(
          R"json({"name": "process_name", "ph": "M", "pid": 9, "args": {"name": "/device:GPU:0/stream:14 Compute"}},
{"name": "MatMul", "cat": "Op", "ph": "X", "pid": 9, "tid": 0, "ts": 1500000000000020, "dur": 30, "args": {}},)json"),
      "timeline.json");
  CHECK(samples::count_of(apart.trace.ranks.at(0), OpKind::kKernel) == 1);
  CHECK(apart.findings.count("derived-events") == 2);
  samples::check_flips(together, "timeline.json");
}

TEST_CASE("a cut XSpace is refused or read up to its last whole event", "[import][tensorflow]") {
  const std::string whole = xspace();
  for (size_t size = 0; size < whole.size(); size += 7) {
    INFO(size);
    const auto refused = import_text(whole.substr(0, size), {}, "x.pb");
    if (!refused) CHECK_FALSE(refused.error().fix.empty());
    const auto taken = import_text(whole.substr(0, size), {.cut_files = CutFiles::kAccept}, "x.pb");
    if (refused || !taken) continue;
    CHECK(taken->findings.count("file-cut") == 1);
  }
}

TEST_CASE("flipped bits in an XSpace never do more than a finding or a refusal",
          "[import][tensorflow]") {
  samples::check_flips(xspace(), "host.xplane.pb");
}

TEST_CASE("a trace viewer file with more events than may be held is refused with a limit",
          "[import][tensorflow]") {
  std::string text =
      R"js({"displayTimeUnit": "ns", "metadata": {"highres-ticks": true}, "traceEvents": [
{"ph": "M", "pid": 1, "name": "process_name", "args": {"name": "/device:GPU:0"}},
{"ph": "M", "pid": 1, "tid": 2, "name": "thread_name", "args": {"name": "Stream #17(Kernel)"}})js";
  for (int i = 0; i < 50; ++i) {
    text += fmt::format(R"(,{{"ph": "X", "pid": 1, "tid": 2, "ts": {}, "dur": 1, "name": "gemm"}})",
                        2 * i);
  }
  text += "]}";
  CHECK(import_text(text, {}, "host.trace.json"));
  ImportOptions options;
  options.most_held = 1000;
  const auto refused = import_text(text, options, "host.trace.json");
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == Code::kLimit);
  CHECK_THAT(refused.error().fix, Catch::Contains("xplane"));
}

}  // namespace rehearse::import_tensorflow_test
