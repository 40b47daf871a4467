// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "tests/traces/damage.hpp"
#include "tests/traces/import_samples.hpp"
#include "traces/import/horovod/fuse.hpp"
#include "traces/import/horovod/horovod.hpp"
#include "traces/import/horovod/timeline.hpp"
#include "traces/import/limits.hpp"
#include "traces/import/names.hpp"

namespace rehearse::import_horovod_test {
using namespace rehearse;
using namespace rehearse::traces;
using samples::import_text;

namespace {

// Timelines as Horovod writes them.
class Timeline {
 public:
  explicit Timeline(bool epoch = true) {
    if (epoch) {
      add(R"({"name": "process_name", "ph": "M", "pid": 0, "args": {"start_time_since_epoch_in_micros": 1592860687560103}})");
    }
  }
  void tensor(int pid, const std::string& name) {
    add(fmt::format(R"({{"name": "process_name", "ph": "M", "pid": {}, "args": {{"name": "{}"}}}})",
                    pid, name));
  }
  void begin(int pid, const std::string& name, int64_t ts) {
    add(fmt::format(R"({{"ph": "B", "name": "{}", "ts": {}, "pid": {}}})", name, ts, pid));
  }
  void end(int pid, int64_t ts, const std::string& args = "") {
    add(fmt::format(R"({{"ph": "E", "ts": {}, "pid": {}{}}})", ts, pid,
                    args.empty() ? "" : ", \"args\": " + args));
  }
  void ready(int pid, int rank, int64_t ts, int64_t length = 0) {
    add(fmt::format(R"({{"ph": "X", "name": "{}", "ts": {}, "pid": {}, "dur": {}}})", rank, ts, pid,
                    length));
  }
  void add(const std::string& event) { events_ += (events_.empty() ? "" : ",\n") + event; }
  [[nodiscard]] std::string text() const { return "[\n" + events_ + "\n]\n"; }
  [[nodiscard]] std::string unclosed() const { return "[\n" + events_ + ",\n"; }

 private:
  std::string events_;
};

// Two tensors of 1000 floats, fused; rank 1 is late by 400 us.
void add_fused(Timeline& t, int64_t at) {
  for (const int pid : {1, 2}) {
    t.begin(pid, "NEGOTIATE_ALLREDUCE", at + pid);
    t.ready(pid, 0, at + pid);
    t.ready(pid, 1, at + 400 + pid, 812355471858);
    t.end(pid, at + 410 + pid);
  }
  for (const int pid : {1, 2}) t.begin(pid, "ALLREDUCE", at + 420 + pid);
  for (const int pid : {1, 2}) t.begin(pid, "QUEUE", at + 425 + pid);
  for (const int pid : {1, 2}) t.end(pid, at + 430 + pid);
  for (const int pid : {1, 2}) t.begin(pid, "MEMCPY_IN_FUSION_BUFFER", at + 430 + pid);
  for (const int pid : {1, 2}) t.end(pid, at + 440 + pid);
  for (const int pid : {1, 2}) t.begin(pid, "NCCL_ALLREDUCE", at + 440 + pid);
  for (const int pid : {1, 2}) t.end(pid, at + 600 + pid);
  for (const int pid : {1, 2})
    t.end(pid, at + 620 + pid, R"({"dtype": "float32", "shape": "[10, 100]"})");
}

Timeline two_steps() {
  Timeline t;
  t.tensor(1, "dense/kernel");
  t.tensor(2, "dense/bias");
  t.add(R"({"ph": "i", "name": "CYCLE_START", "ts": 5, "s": "g"})");
  add_fused(t, 1000);
  add_fused(t, 3000);
  return t;
}

Imported imported(const std::string& text) {
  auto got = import_text(text, {.clocks = ClockAlignment::kAsRecorded}, "timeline.json");
  if (!got) FAIL(got.error().message());
  return std::move(*got);
}

}  // namespace

TEST_CASE("fused tensors are one collective that every rank joins when it is ready",
          "[import][horovod]") {
  const Imported got = imported(two_steps().text());
  const Trace& trace = got.trace;
  REQUIRE(trace.ranks.size() == 2);
  CHECK(trace.header.framework() == "horovod");
  constexpr Nanos kEpoch = 1592860687560103000;
  for (const RankTrace& rank : trace.ranks) {
    REQUIRE(rank.ops.calls.size() == 2);
    CHECK(rank.ops.calls[0].collective == Collective::kAllReduce);
    CHECK(rank.ops.calls[0].bytes_in == 8000);
    CHECK(rank.ops.calls[0].dtype == DType::kFp32);
    CHECK(rank.ops.calls[1].sequence == 1);
    std::vector<std::pair<Nanos, Nanos>> spans;
    for (size_t op = 0; op < rank.ops.size(); ++op) {
      if (rank.ops.kind[op] == OpKind::kCall)
        spans.emplace_back(rank.ops.start[op] - kEpoch, rank.ops.duration[op]);
    }
    // From the last of its tensors being ready to the end on rank 0.
    const Nanos ready = rank.rank == 0 ? 1'002'000 : 1'402'000;
    REQUIRE(spans.size() == 2);
    CHECK(spans[0].first == ready);
    CHECK(spans[0].first + spans[0].second == 1'602'000);
  }
  CHECK(trace.communicators.at(0).members == std::vector<RankId>{0, 1});
}

TEST_CASE("the rows of tensors keep their phases", "[import][horovod]") {
  const Imported got = imported(two_steps().text());
  const RankTrace& rank = got.trace.ranks[0];
  std::map<std::string, size_t> phases;
  for (size_t op = 0; op < rank.ops.size(); ++op) {
    if (rank.ops.kind[op] == OpKind::kAnnotation) ++phases[got.trace.strings.at(rank.ops.name[op])];
  }
  CHECK(phases["NEGOTIATE_ALLREDUCE"] == 4);
  CHECK(phases["ALLREDUCE"] == 4);
  CHECK(phases["QUEUE"] == 4);
  CHECK(phases["MEMCPY_IN_FUSION_BUFFER"] == 4);
  CHECK(phases["NCCL_ALLREDUCE"] == 4);
  CHECK(phases["CYCLE_START"] == 1);
  CHECK(phases["dense/kernel"] == 2);  // ready twice
  size_t rows = 0;
  for (const Lane& lane : rank.lanes) rows += got.trace.strings.at(lane.name).starts_with("dense/");
  CHECK(rows == 2);
}

TEST_CASE("a timeline that was never closed is whole up to its last event", "[import][horovod]") {
  const Imported open = imported(two_steps().unclosed());
  CHECK(open.findings.count("array-not-closed") == 1);
  CHECK(open.findings.count("file-cut") == 0);
  CHECK(open.trace.operations() == imported(two_steps().text()).trace.operations());
}

TEST_CASE("a timeline in an object is a timeline", "[import][horovod]") {
  const std::string text =
      R"js({"traceEvents": [{"name": "process_name", "ph": "M", "pid": 1, "args": {"name": "grad/a"}},
{"ph": "B", "name": "NEGOTIATE_ALLREDUCE", "ts": 1, "pid": 1}, {"ph": "X", "name": "0", "ts": 2, "dur": 0, "pid": 1},
{"ph": "E", "ts": 3, "pid": 1}, {"ph": "B", "name": "ALLREDUCE", "ts": 4, "pid": 1},
{"ph": "E", "ts": 9, "pid": 1, "args": {"dtype": "float32", "shape": "[128]"}}]})js";
  CHECK(horovod::sniff(text));
  CHECK_FALSE(horovod::sniff(samples::document(
      R"js({"ph": "X", "cat": "cpu_op", "name": "NEGOTIATE_ALLREDUCE", "pid": 1, "tid": 1, "ts": 1, "dur": 2})js")));
  const auto got = import_text(text, {}, "timeline.json");
  REQUIRE(got);
  REQUIRE(got->trace.ranks.at(0).ops.calls.size() == 1);
  CHECK(got->trace.ranks[0].ops.calls[0].bytes_in == 512);
}

TEST_CASE("rotated files of one run are joined", "[import][horovod]") {
  Timeline first, second;
  first.tensor(1, "dense/kernel");
  first.tensor(2, "dense/bias");
  add_fused(first, 1000);
  second.tensor(2, "dense/kernel");  // numbered anew
  second.tensor(1, "dense/bias");
  add_fused(second, 3000);
  const samples::TempFolder folder;
  SilentReporter silent;
  const auto got = import_files(
      {folder.write("b.json", second.text()), folder.write("a.json", first.text())}, {}, silent);
  if (!got) FAIL(got.error().message());
  CHECK(got->findings.count("rank-twice") == 0);
  REQUIRE(got->trace.ranks.size() == 2);
  const Imported whole = imported(two_steps().text());
  for (size_t r = 0; r < 2; ++r) {
    REQUIRE(got->trace.ranks[r].ops.calls.size() == 2);
    CHECK(got->trace.ranks[r].lanes.size() + (r == 0 ? 1 : 0) == whole.trace.ranks[r].lanes.size());
  }
}

TEST_CASE("what a scatter divides is no more than a call has", "[import][horovod]") {
  Timeline t(false);
  t.tensor(1, "REDUCESCATTER");
  t.begin(1, "NEGOTIATE_REDUCESCATTER", 0);
  for (const int rank : {0, 63}) t.ready(1, rank, rank);
  t.end(1, 100);
  t.begin(1, "REDUCESCATTER", 120);
  t.end(1, 190, R"({"dtype": "int64", "shape": "[70368744177664]"})");
  const Imported got = imported(t.text());
  REQUIRE(got.trace.ranks[1].ops.calls.size() == 1);
  CHECK(got.trace.ranks[1].ops.calls[0].bytes_out == Bytes{1} << 49);
  CHECK(got.trace.ranks[1].ops.calls[0].bytes_in == kMostBytes);
}

TEST_CASE("sizes of gathers and scatters follow from the output", "[import][horovod]") {
  Timeline t(false);
  int pid = 0;
  for (const std::string op : {"ALLGATHER", "REDUCESCATTER", "BROADCAST", "ALLTOALL"}) {
    t.tensor(++pid, op);
    t.begin(pid, "NEGOTIATE_" + op, pid * 1000);
    for (const int rank : {0, 3}) t.ready(pid, rank, pid * 1000 + rank);
    t.end(pid, pid * 1000 + 10);
    t.begin(pid, op, pid * 1000 + 20);
    t.end(pid, pid * 1000 + 90, R"({"dtype": "int64", "shape": "[8]"})");
  }
  const Imported got = imported(t.text());
  REQUIRE(got.trace.ranks.size() == 4);  // ranks 1 and 2 took part without being named
  const std::vector<Call>& calls = got.trace.ranks[1].ops.calls;
  REQUIRE(calls.size() == 4);
  CHECK(calls[0].bytes_in == 16);
  CHECK(calls[0].bytes_out == 64);
  CHECK(calls[1].bytes_in == 256);
  CHECK(calls[1].bytes_out == 64);
  CHECK(calls[2].collective == Collective::kBroadcast);
  CHECK(calls[3].collective == Collective::kAllToAll);
}

TEST_CASE("oddities of timelines are said", "[import][horovod]") {
  Timeline t(false);
  t.tensor(1, "a");
  t.end(1, 5);  // began earlier
  t.begin(1, "NEGOTIATE_ALLREDUCE", 10);
  t.end(1, 8);  // ends before it begins
  t.begin(1, "ALLREDUCE", 20);
  t.end(1, 30, R"({"dtype": "quaternion", "shape": "[2"})");
  t.begin(1, "ALLREDUCE", 40);  // never ends
  t.add(R"({"ph": "B", "name": "ALLREDUCE", "pid": 1})");
  t.add(R"({"ph": "X", "name": "not a rank", "ts": 3, "pid": 1})");
  t.add(R"({"ph": "Q", "ts": 3, "pid": 1})");
  t.add(R"("text")");
  const Imported got = imported(t.text());
  for (const char* id :
       {"end-without-begin", "negative-duration", "unknown-dtype", "unknown-shape",
        "phase-without-end", "event-without-time", "instant-events", "unused-phase",
        "event-unreadable", "readiness-unknown", "collective-without-size"}) {
    INFO(id);
    CHECK(got.findings.count(id) == 1);
  }
  CHECK(got.trace.ranks[0].ops.calls.size() == 1);
}

TEST_CASE("sizes of timelines that no buffer has stay within their limit", "[import][horovod]") {
  Timeline t(false);
  for (int pid = 1; pid <= 40; ++pid) {
    t.tensor(pid, fmt::format("t{}", pid));
    t.begin(pid, "NEGOTIATE_REDUCESCATTER", 0);
    for (const int rank : {0, 1000}) t.ready(pid, rank, 1);
    t.end(pid, 10);
    t.begin(pid, "REDUCESCATTER", 20);
    t.end(pid, 90, R"({"dtype": "complex128", "shape": "[140737488355327]"})");
  }
  const Imported got = imported(t.text());
  for (const Call& call : got.trace.ranks[0].ops.calls) {
    CHECK(call.bytes_out > 0);
    CHECK(call.bytes_out <= Bytes{1} << 50);
    CHECK(call.bytes_in > 0);
    CHECK(call.bytes_in <= Bytes{1} << 50);
  }
}

TEST_CASE("collectives that only some ranks were ready for are said", "[import][horovod]") {
  Timeline t;
  t.tensor(1, "grad");
  add_fused(t, 1000);
  CHECK(import_text(t.text())->findings.count("ranks-not-marked") == 0);
  t.begin(1, "NEGOTIATE_ALLREDUCE", 9000);
  t.ready(1, 1, 9001);
  t.end(1, 9010);
  t.begin(1, "ALLREDUCE", 9011);
  t.begin(1, "NCCL_ALLREDUCE", 9012);
  t.end(1, 9020);
  t.end(1, 9021, R"({"dtype": "float32", "shape": "[4]"})");
  const auto got = import_text(t.text());
  REQUIRE(got);
  CHECK(got->findings.count("ranks-not-marked") == 1);
  CHECK(got->trace.ranks[0].ops.calls.size() == 2);
}

TEST_CASE("a mark of a rank far beyond all others makes no job of a million", "[import][horovod]") {
  Timeline t = two_steps();
  t.begin(1, "NEGOTIATE_ALLREDUCE", 5000);
  t.ready(1, 900'000, 5001);
  t.end(1, 5002);
  const Imported got = imported(t.text());
  CHECK(got.trace.ranks.size() == 2);
  CHECK(got.trace.header.world_size() == 2);
  CHECK(got.findings.count("rank-beyond-others") == 1);
}

TEST_CASE("shapes are multiplied without overflow", "[import][horovod]") {
  CHECK(horovod::elements_of("[]") == 1);
  CHECK(horovod::elements_of("[3, 4]") == 12);
  CHECK(horovod::elements_of("[0, 4]") == 0);
  CHECK_FALSE(horovod::elements_of("[3, -4]"));
  CHECK_FALSE(horovod::elements_of("3, 4"));
  CHECK_FALSE(horovod::elements_of("[99999999999, 99999999999]"));
  CHECK(element_bytes("uint16") == 2);
  CHECK(element_bytes("float64") == 8);
  CHECK(element_bytes("complex") == 0);
}

TEST_CASE("a cut timeline is refused or read up to its last whole event", "[import][horovod]") {
  Timeline t;
  t.tensor(1, "a");
  t.tensor(2, "b");
  for (int i = 0; i < 20; ++i) add_fused(t, 1000 * (i + 1));
  samples::check_cuts(t.text(), "timeline.json");
}

TEST_CASE("flipped bits in a timeline never do more than a finding or a refusal",
          "[import][horovod]") {
  samples::check_flips(two_steps().text(), "timeline.json");
}

}  // namespace rehearse::import_horovod_test
