// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "tests/traces/import_samples.hpp"
#include "tests/traces/nsys_samples.hpp"
#include "traces/model/rtrace.hpp"

namespace rehearse::import_nsys_test {
using namespace rehearse;
using namespace rehearse::traces;
using namespace rehearse::traces::samples;

namespace {

constexpr Nanos kEpoch = 1'700'000'000'000'000'000;

Imported imported(const std::string& sql, const ImportOptions& options = {}) {
  auto got = import_text(database(nsys_tables() + sql), options, "run.sqlite");
  if (!got) FAIL(got.error().message());
  return std::move(*got);
}

// One all-reduce on each of two processes, with what NCCL's ranges say.
std::string two_ranks(const std::string& json =
                          R"({"NCCL communicator ID":77,"Message size [bytes]":4096,)"
                          R"("Reduction operation":"Avg"})") {
  std::string sql;
  for (const int pid : {11, 10}) {
    const int rank = pid - 10;
    sql += range(
        pid, 1, 0, 50, "ncclCommInitRank",
        fmt::format(R"({{"NCCL communicator ID":77,"No. of ranks":2,"Rank":{},"CUDA device":0}})",
                    rank));
    sql += range(pid, 1, 100, 200, "ncclAllReduce", json);
    sql += runtime(pid, 1, 5, 120, 130);
    sql += kernel(pid, rank, 7, 5, 300 + 10 * rank, 400, 3);
  }
  return sql;
}

}  // namespace

TEST_CASE("processes of one export become ranks with collectives of their payloads",
          "[import][nsys]") {
  const Imported got = imported(two_ranks());
  const Trace& trace = got.trace;
  REQUIRE(trace.ranks.size() == 2);
  CHECK(trace.header.world_size() == 2);
  CHECK(trace.header.producer() == "nsys");
  REQUIRE(trace.communicators.size() == 1);
  CHECK(trace.communicators[0].members == std::vector<RankId>{0, 1});
  for (const RankTrace& r : trace.ranks) {
    CHECK(r.gpu == r.rank);
    REQUIRE(r.ops.calls.size() == 1);
    CHECK(r.ops.calls[0].collective == Collective::kAllReduce);
    CHECK(r.ops.calls[0].bytes_in == 4096);
    CHECK(r.ops.calls[0].reduction == Reduction::kAverage);
    CHECK(r.ops.calls[0].dtype == DType::kBf16);
    CHECK(count_of(r, OpKind::kLaunch) == 1);
    CHECK(r.ops.start[0] == kEpoch);
  }
  CHECK(got.findings.count("collective-without-size") == 0);
  CHECK(got.findings.count("gpu-work-without-launch") == 0);
  CHECK(got.findings.count("rank-assumed") == 0);
}

TEST_CASE("binary payloads are decoded by the schema in the export", "[import][nsys]") {
  const std::string schema = R"(
CREATE TABLE NVTX_PAYLOAD_SCHEMA_ENTRIES (domainId INTEGER, schemaId INTEGER, idx INTEGER, type INTEGER,
  name TEXT, offset INTEGER);
INSERT INTO NVTX_PAYLOAD_SCHEMA_ENTRIES VALUES (1, 16777220, 0, 18, 'NCCL communicator ID', NULL),
  (1, 16777220, 1, 22, 'Message size [bytes]', 8);
)";
  const std::string head =
      "01000000"
      "00000000"
      "04000001"
      "00000000"
      "1000000000000000"
      "3000000000000000";
  const auto with = [&](const std::string& payload) {
    return schema + runtime(10, 1, 5, 120, 130) + kernel(10, 0, 7, 5, 300, 400, 3) +
           fmt::format(
               "INSERT INTO NVTX_EVENTS VALUES (100,200,59,'ncclAllGather',NULL,{},NULL,x'{}{}');",
               global(10, 1), head, payload);
  };
  const Imported got =
      imported(with("4d00000000000000"
                    "0010000000000000"));
  REQUIRE(got.trace.ranks[0].ops.calls.size() == 1);
  const Call& call = got.trace.ranks[0].ops.calls[0];
  CHECK(call.collective == Collective::kAllGather);
  CHECK(call.bytes_in == 4096);
  CHECK(got.trace.communicators[0].id == "0x000000000000004d");
  const Imported cut = imported(with("4d000000000000"));
  CHECK(cut.findings.count("payload-unreadable") == 1);
  CHECK(cut.findings.count("collective-without-size") == 1);
}

TEST_CASE("a group of sends and receives in one kernel is an exchange", "[import][nsys]") {
  std::string sql;
  for (const int pid : {10, 11}) {
    const int rank = pid - 10;
    sql += range(pid, 1, 0, 50, "ncclCommInitRank",
                 fmt::format(R"({{"NCCL communicator ID":77,"No. of ranks":2,"Rank":{}}})", rank));
    sql += range(pid, 1, 100, 110, "ncclGroupStart");
    for (int peer = 0; peer < 2; ++peer) {
      const std::string json = fmt::format(
          R"({{"NCCL communicator ID":77,"Message size [bytes]":1000,"Peer rank":{}}})", peer);
      sql += range(pid, 1, 111 + 10 * peer, 115 + 10 * peer, "ncclSend", json);
      sql += range(pid, 1, 116 + 10 * peer, 120 + 10 * peer, "ncclRecv", json);
    }
    sql += range(pid, 1, 150, 200, "ncclGroupEnd");
    sql += runtime(pid, 1, 5, 160, 170) + kernel(pid, rank, 7, 5, 300, 400, 4);
  }
  const Imported got = imported(sql);
  for (const RankTrace& r : got.trace.ranks) {
    REQUIRE(r.ops.calls.size() == 1);
    CHECK(r.ops.calls[0].collective == Collective::kAllToAll);
    CHECK(r.ops.calls[0].bytes_in == 2000);
    CHECK(r.ops.calls[0].bytes_out == 2000);
  }
  CHECK(got.findings.count("grouped-sends-as-all-to-all") == 0);
}

TEST_CASE("a group of messages to some ranks is the same from nsys and from Kineto",
          "[import][nsys][kineto]") {
  // Ranks 0 and 1 of a pipeline of four exchange in one group: what a step of 1F1B does.
  std::string sql;
  samples::TempFolder folder;
  for (const int rank : {0, 1}) {
    const int pid = 10 + rank, peer = 1 - rank;
    const std::string json = fmt::format(
        R"({{"NCCL communicator ID":77,"Message size [bytes]":4000,"Peer rank":{}}})", peer);
    sql += range(pid, 1, 0, 50, "ncclCommInitRank",
                 fmt::format(R"({{"NCCL communicator ID":77,"No. of ranks":4,"Rank":{}}})", rank));
    sql += range(pid, 1, 100, 110, "ncclGroupStart") + range(pid, 1, 111, 115, "ncclRecv", json) +
           range(pid, 1, 116, 120, "ncclSend", json) + range(pid, 1, 150, 200, "ncclGroupEnd") +
           runtime(pid, 1, 5, 160, 170) + kernel(pid, rank, 7, 5, 300, 400, 4);
    const auto message = [&](const char* name, const char* key, int start) {
      return fmt::format(
          R"js({{"ph": "X", "cat": "cpu_op", "name": "record_param_comms", "pid": 1, "tid": 1, "ts": {}, "dur": 0.004,
"args": {{"Collective name": "{}", "In msg nelems": 1000, "Out msg nelems": 1000, "dtype": "Float", "Group size": 4,
"Process Group Name": "0", "Process Group Ranks": "[0, 1, 2, 3]", "{}": {}}}}},)js",
          static_cast<double>(start) / 1000, name, key, peer);
    };
    folder.write(
        fmt::format("rank{}.json", rank),
        samples::document(
            message("recv", "Src Rank", 111) + message("send", "Dst Rank", 116) +
                R"js({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 0.160, "dur": 0.010, "args": {"correlation": 5}},
{"ph": "X", "cat": "kernel", "name": "ncclDevKernel_SendRecv(x)", "pid": 0, "tid": 7, "ts": 0.300, "dur": 0.100, "args": {"device": 0, "stream": 7, "correlation": 5}})js",
            rank, 4));
  }
  SilentReporter silent;
  const auto kineto = import_files({folder.path()}, {}, silent);
  REQUIRE(kineto);
  const Imported nsys = imported(sql);
  for (const Imported* got : {&nsys, &*kineto}) {
    REQUIRE(got->trace.ranks.size() == 2);
    for (const RankTrace& rank : got->trace.ranks) {
      REQUIRE(rank.ops.calls.size() == 2);
      const Call &receive = rank.ops.calls[0], &send = rank.ops.calls[1];
      CHECK(receive.collective == Collective::kRecv);
      CHECK(send.collective == Collective::kSend);
      CHECK(receive.peer == 1 - static_cast<int>(rank.rank));
      CHECK(send.peer == 1 - static_cast<int>(rank.rank));
      CHECK(receive.bytes_out == 4000);
      CHECK(send.bytes_in == 4000);
      CHECK(send.group != 0);
      CHECK(send.group == receive.group);
    }
    CHECK(got->findings.count("grouped-sends-as-all-to-all") == 0);
    CHECK(got->findings.count("sendrecv-assumed-all-to-all") == 0);
  }
}

TEST_CASE("a peer that is no member is not believed", "[import][nsys]") {
  for (const int peer : {2, 99, 10'000'000, -5}) {
    INFO(peer);
    const std::string json = fmt::format(
        R"({{"NCCL communicator ID":77,"Message size [bytes]":1000,"Peer rank":{}}})", peer);
    std::string sql;
    for (const int pid : {10, 11}) {
      sql += range(pid, 1, 0, 50, "ncclCommInitRank",
                   fmt::format(R"({{"NCCL communicator ID":77,"No. of ranks":2,"Rank":{}}})",
                               pid - 10)) +
             range(pid, 1, 100, 200, "ncclSend", json) + runtime(pid, 1, 1, 150, 160) +
             kernel(pid, pid - 10, 7, 1, 300, 400, 4);
    }
    const Imported got = imported(sql);
    REQUIRE(got.trace.ranks.size() == 2);
    CHECK(got.trace.header.world_size() == 2);
    for (const RankTrace& rank : got.trace.ranks) CHECK(rank.ops.calls.at(0).peer == -1);
    CHECK(got.findings.count("peer-not-a-member") == (peer < 0 ? 0 : 2));
    TempFolder folder;
    CHECK(write_rtrace(got.trace, folder.path() / "a.rtrace", Overwrite::kReplace));
  }
}

TEST_CASE("one send is a send, and a group over two communicators is divided", "[import][nsys]") {
  const auto json = [](int comm, int peer) {
    return fmt::format(
        R"({{"NCCL communicator ID":{},"Message size [bytes]":1000,"Peer rank":{}}})", comm, peer);
  };
  const std::string sql =
      range(10, 1, 100, 200, "ncclSend", json(5, 3)) + runtime(10, 1, 1, 150, 160) +
      kernel(10, 0, 7, 1, 300, 400, 4) + range(10, 1, 500, 510, "ncclGroupStart") +
      range(10, 1, 511, 512, "ncclSend", json(5, 3)) +
      range(10, 1, 513, 514, "ncclRecv", json(6, 1)) + range(10, 1, 520, 600, "ncclGroupEnd") +
      runtime(10, 1, 2, 530, 540) + kernel(10, 0, 7, 2, 700, 800, 4) + runtime(10, 1, 3, 550, 560) +
      kernel(10, 0, 9, 3, 700, 800, 4);
  const Imported got = imported(sql);
  const auto& calls = got.trace.ranks[0].ops.calls;
  REQUIRE(calls.size() == 3);
  CHECK(calls[0].collective == Collective::kSend);
  CHECK(calls[0].peer == 3);
  CHECK(calls[0].bytes_in == 1000);
  CHECK(calls[1].collective == Collective::kSend);
  CHECK(calls[2].collective == Collective::kRecv);
  CHECK(calls[1].communicator != calls[2].communicator);
}

TEST_CASE("kernels of a CUDA graph hang on its launch, graphs traced whole are one kernel",
          "[import][nsys]") {
  const std::string sql =
      runtime(10, 1, 9, 100, 200, 5) + kernel(10, 0, 7, 9, 300, 400) +
      kernel(10, 0, 7, 9, 400, 500) +
      fmt::format(
          "CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start INTEGER, end INTEGER, deviceId "
          "INTEGER,"
          "contextId INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER, graphId "
          "INTEGER); INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES (600,900,0,1,7,12,{},4);",
          global(10));
  const Imported got = imported(sql);
  const RankTrace& r = got.trace.ranks[0];
  CHECK(count_of(r, OpKind::kGraphLaunch) == 1);
  CHECK(count_of(r, OpKind::kKernel) == 3);
  CHECK(find_op(got, "CUDA graph 4"));
  CHECK(got.findings.count("graph-as-one-kernel") == 1);
}

TEST_CASE("waits and events are tied to streams", "[import][nsys]") {
  const std::string sql = fmt::format(
      "CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION (start INTEGER, end INTEGER, contextId "
      "INTEGER, streamId "
      "INTEGER, correlationId INTEGER, globalPid INTEGER, syncType INTEGER, eventId INTEGER);"
      "CREATE TABLE CUPTI_ACTIVITY_KIND_CUDA_EVENT (contextId INTEGER, streamId INTEGER, "
      "correlationId INTEGER, "
      "globalPid INTEGER, eventId INTEGER);"
      "INSERT INTO CUPTI_ACTIVITY_KIND_CUDA_EVENT VALUES (1,7,21,{0},40);"
      "INSERT INTO CUPTI_ACTIVITY_KIND_SYNCHRONIZATION VALUES "
      "(1,2,1,9,22,{0},2,40),(1,2,1,9,23,{0},3,4294967295),"
      "(1,2,1,9,99,{0},3,0);",
      global(10));
  const Imported got = imported(sql + kernel(10, 0, 7, 0, 10, 20) + kernel(10, 0, 9, 0, 60, 70) +
                                runtime(10, 1, 21, 20, 21, 7) + runtime(10, 1, 22, 30, 31, 6) +
                                runtime(10, 1, 23, 40, 80, 8));
  const RankTrace& r = got.trace.ranks[0];
  REQUIRE(r.ops.syncs.size() == 3);
  const Sync &record = r.ops.syncs[0], &wait = r.ops.syncs[1], &stream = r.ops.syncs[2];
  CHECK(record.sync == SyncKind::kRecord);
  CHECK(record.event != 0);
  CHECK(wait.event == record.event);
  REQUIRE(record.stream_lane >= 0);
  CHECK(r.lanes[static_cast<size_t>(record.stream_lane)].id == 7);
  REQUIRE(wait.stream_lane >= 0);
  CHECK(r.lanes[static_cast<size_t>(wait.stream_lane)].id == 9);
  CHECK(stream.stream_lane == wait.stream_lane);
  CHECK(stream.event == 0);
  CHECK(got.findings.count("sync-without-call") == 1);
}

TEST_CASE("ranges named like steps are steps, the surest name wins", "[import][nsys]") {
  const Imported got = imported(kernel(10, 0, 7, 0, 10, 20) + range(10, 1, 0, 100, "step 3") +
                                range(10, 1, 100, 200, "Step_4") + range(10, 1, 10, 20, "batch 9") +
                                range(10, 1, 110, 120, "step 5") + range(10, 1, 300, 310, "steps") +
                                range(10, 1, 320, 330, "aten::mul, op_id = 7"));
  const auto& steps = got.trace.ranks[0].steps;
  REQUIRE(steps.size() == 2);
  CHECK(steps[0].number == 3);
  CHECK(steps[1].number == 4);
  CHECK(steps[1].end == kEpoch + 200);
  CHECK(got.findings.count("steps-overlap") == 1);
  const auto op = find_op(got, "aten::mul");
  REQUIRE(op);
  CHECK(got.trace.ranks[0].ops.kind[*op] == OpKind::kHost);
  CHECK(got.trace.header.framework() == "pytorch");
}

TEST_CASE("an export of few tables and columns is read with what it has", "[import][nsys]") {
  const auto got = import_text(database(R"(
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, streamId INTEGER, shortName INTEGER);
INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (5, 9, 7, 1), (NULL, 9, 7, 1), (20, 10, 7, 2);
CREATE TABLE StringIds (id INTEGER, value TEXT); INSERT INTO StringIds VALUES (1, 'gemm');
CREATE TABLE OSRT_API (start INTEGER); INSERT INTO OSRT_API VALUES (1);
CREATE TABLE SCHED_EVENTS (start INTEGER);
)"),
                               {}, "rank3.sqlite");
  if (!got) FAIL(got.error().message());
  const RankTrace& r = got->trace.ranks[0];
  CHECK(r.rank == 3);
  CHECK(r.ops.size() == 2);
  CHECK(find_op(*got, "gemm"));
  CHECK(got->findings.count("event-without-time") == 1);
  CHECK(got->findings.count("negative-duration") == 1);
  CHECK(got->findings.count("name-missing") == 1);
  CHECK(got->findings.count("tables-not-used") == 1);
}

TEST_CASE("processes without GPU work are left out and counted", "[import][nsys]") {
  const Imported got = imported(kernel(10, 0, 7, 0, 10, 20) + range(12, 1, 0, 5, "load data") +
                                runtime(12, 1, 1, 0, 1) + range(10, 1, 0, 5, "work"));
  CHECK(got.trace.ranks.size() == 1);
  CHECK(got.findings.count("processes-without-gpu-work") == 2);
  CHECK_FALSE(find_op(got, "load data"));
}

TEST_CASE("ranks that no file tells are numbered by device, and a file twice is told",
          "[import][nsys]") {
  SilentReporter silent;
  const TempFolder folder;
  const auto a =
      folder.write("a.sqlite", database(nsys_tables() + kernel(20, 1, 7, 0, 1, 2) +
                                        kernel(21, 0, 7, 0, 1, 3) + kernel(21, 0, 7, 0, 3, 4)));
  const auto got = import_files({a}, {}, silent);
  REQUIRE(got);
  REQUIRE(got->trace.ranks.size() == 2);
  CHECK(got->trace.ranks[0].gpu == 0);
  CHECK(got->trace.ranks[0].ops.size() == 2);
  CHECK(got->findings.count("rank-assumed") == 2);
  CHECK(got->trace.ranks[0].host == got->trace.ranks[1].host);
  const auto b = folder.write("b.sqlite", database(nsys_tables() + two_ranks()));
  const auto c = folder.write("c.sqlite", database(nsys_tables() + two_ranks()));
  const auto twice = import_files({b, c}, {}, silent);
  REQUIRE(twice);
  CHECK(twice->findings.count("rank-twice") == 2);
}

TEST_CASE("a compressed export is read, and nothing is left beside a plain one", "[import][nsys]") {
  const std::string bytes = database(nsys_tables() + two_ranks());
  for (const std::string& packed : {gzip(bytes), zstd(bytes)}) {
    const auto got = import_text(packed, {}, "run.sqlite.gz");
    REQUIRE(got);
    CHECK(got->trace.ranks.size() == 2);
  }
  const TempFolder folder;
  SilentReporter silent;
  const auto file = folder.write("odd ?#% name.sqlite", bytes);
  REQUIRE(import_files({file}, {}, silent));
  size_t files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder.path()))
    ++files;
  CHECK(files == 1);
}

}  // namespace rehearse::import_nsys_test
