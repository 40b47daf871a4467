// SPDX-License-Identifier: Apache-2.0
// From CUPTI's buffers, NVTX and NCCL's plugin to an imported trace, with stand-ins for what needs a GPU.
#include <catch2/catch.hpp>

#include "tests/skip.hpp"
#include "tests/traces/capture/recording.hpp"
#include "traces/program/program.hpp"

namespace rehearse::capture_job_test {
using namespace rehearse;
using namespace rehearse::tests;
using namespace rehearse::traces;

namespace {

size_t count_named(const Imported& got, size_t rank, std::string_view part) {
  size_t n = 0;
  for (const uint32_t name : got.trace.ranks[rank].ops.name) {
    n += got.trace.strings.at(name).find(part) != std::string::npos ? 1 : 0;
  }
  return n;
}

// Every call waits for what the recorded event names: the newest kernel on the compute stream, and for its own launch.
void check_program(const Trace& trace) {
  const auto program = build_program(trace, {.inferred = InferredEdges::kDrop});
  if (!program) FAIL(program.error().message());
  CHECK(program->steps == 3);
  REQUIRE(program->ranks.size() == 2);
  for (const RankProgram& rank : program->ranks) {
    REQUIRE(rank.calls.size() == 3);
    for (const OpId op : rank.call_op) {
      size_t kernels = 0, launches = 0;
      for (const OpId from : rank.predecessors(op)) {
        kernels += rank.kind[from] == OpKind::kKernel ? 1 : 0;
        launches += rank.kind[from] == OpKind::kLaunch ? 1 : 0;
      }
      CHECK(kernels == 1);
      CHECK(launches == 1);
    }
  }
  for (size_t i = 0; i < 3; ++i) {
    CHECK(program->ranks[0].calls[i].sequence == program->ranks[1].calls[i].sequence);
  }
}

// Two ranks of a job of three steps; `walker`: the libcupti that steps from record to record, "" for the stand-in.
void check_job(const char* walker) {
  Recording recording;
  recording.with("WORLD_SIZE", "2").with("NCCL_ALGO", "Ring").with("SECRET_TOKEN", "x");
  recording.with("NCCL_SOME_KEY", "hidden");
  if (*walker != 0) recording.with("FAKE_CUPTI_WALKER", walker);
  for (const char* rank : {"0", "1"}) {
    const Run run = recording.with("RANK", rank).run({"job", "3"});
    INFO(run.err);
    REQUIRE(run.code == 0);
    CHECK(run.err.empty());
  }
  REQUIRE(recording.files().size() == 2);
  CHECK(recording.files()[0].filename().string().starts_with("rank0."));
  const auto got = recording.import();
  if (!got) FAIL(got.error().message());
  const Trace& trace = got->trace;
  REQUIRE(trace.ranks.size() == 2);
  CHECK(trace.header.world_size() == 2);
  REQUIRE(trace.communicators.size() == 1);
  CHECK(trace.communicators[0].members == std::vector<RankId>{0, 1});
  for (size_t i = 0; i < 2; ++i) {
    const RankTrace& r = trace.ranks[i];
    CHECK(r.rank == i);
    CHECK(r.gpu == 3);
    CHECK(r.gpu_model == "Fake GPU 9000");
    CHECK(r.gpu_memory == Bytes{80} << 30);
    CHECK(r.env.at("NCCL_ALGO") == "Ring");
    CHECK(r.env.count("SECRET_TOKEN") == 0);
    CHECK(r.env.count("NCCL_SOME_KEY") == 0);
    CHECK(r.steps.size() == 3);
    CHECK(count_named(*got, i, "gemm(float*, float*, float*, int)") == 6);
    CHECK(count_named(*got, i, "cudaLaunchKernel") == 9);
    REQUIRE(r.ops.calls.size() == 3);
    for (const Call& call : r.ops.calls) {
      CHECK(call.collective == Collective::kAllReduce);
      CHECK(call.bytes_in == Bytes{4} << 20);
      CHECK(call.dtype == DType::kFp32);
    }
    CHECK(std::count(r.ops.kind.begin(), r.ops.kind.end(), OpKind::kCopy) == 3);
    CHECK(std::count(r.ops.kind.begin(), r.ops.kind.end(), OpKind::kMemset) == 3);
  }
  CHECK(got->findings.count("capture-not-ended") == 0);
  CHECK(got->findings.count("records-dropped") == 0);
  CHECK(got->findings.count("capture-message") == 0);
  CHECK(got->findings.count("name-missing") == 0);
  CHECK(got->findings.count("collective-without-size") == 0);
  check_program(trace);
}

}  // namespace

TEST_CASE("a job recorded through CUPTI, NVTX and NCCL imports as what it did", "[capture]") {
  check_job("");
}

TEST_CASE("the real libcupti walks the same records to the same job", "[capture][cuda]") {
  if (std::string_view(REAL_CUPTI).empty()) {
    rehearse::tests::skip("no libcupti was found when this was built");
    return;
  }
  check_job(REAL_CUPTI);
}

TEST_CASE("records that CUPTI dropped are told in the trace", "[capture]") {
  Recording recording;
  const Run run = recording.with("FAKE_CUPTI_DROPS", "17").with("RANK", "0").run({"job", "2"});
  REQUIRE(run.code == 0);
  const auto got = recording.import();
  if (!got) FAIL(got.error().message());
  CHECK(got->findings.count("records-dropped") == 17);
}

TEST_CASE("another user of CUPTI costs its records and one line, not the rest", "[capture]") {
  Recording recording;
  const Run run = recording.with("FAKE_CUPTI_SUBSCRIBE", "39").with("RANK", "0").run({"job", "2"});
  CHECK(run.code == 0);
  CHECK(lines_of(run.err) == 1);
  CHECK(run.err.find("another profiler uses CUPTI") != std::string::npos);
  const auto got = recording.import();
  if (!got) FAIL(got.error().message());
  CHECK(got->findings.count("capture-message") == 1);
  CHECK(got->trace.ranks[0].steps.size() == 2);
}

TEST_CASE("a libcupti that is not there costs its records and one line", "[capture]") {
  Recording recording;
  const Run run =
      recording.with("REHEARSE_CAPTURE_CUPTI", "/nowhere/libcupti.so").run({"job", "2"});
  CHECK(run.code == 0);
  CHECK(lines_of(run.err) == 1);
  CHECK(run.err.find("libcupti is not found") != std::string::npos);
}

TEST_CASE("the real libcupti without a driver costs its records and one line", "[capture][cuda]") {
  if (std::string_view(REAL_CUPTI).empty()) {
    rehearse::tests::skip("no libcupti was found when this was built");
    return;
  }
  Recording recording;
  const Run run = recording.with("REHEARSE_CAPTURE_CUPTI", REAL_CUPTI).run({"job", "2"});
  CHECK(run.code == 0);
  INFO(run.err);
  // On a machine with a GPU it starts, and says nothing.
  CHECK(lines_of(run.err) <= 1);
}

TEST_CASE("ranges of the real NCCL carry bytes, operator, root and peer", "[capture][cuda]") {
  if (std::string_view(REAL_NCCL).empty()) {
    rehearse::tests::skip("no libnccl was found when this was built");
    return;
  }
  Recording recording;
  const Run run = recording.run({"real-nccl", REAL_NCCL});
  INFO(run.out << run.err);
  REQUIRE(run.code == 0);
  const auto records = recording.records();
  auto names = names_of(records);
  std::map<std::string, pb::CaptureRange> ranges;
  uint32_t version = 0;
  for (const pb::CaptureRecord& r : records) {
    if (r.has_session() && r.session().nccl_version() > 0) version = r.session().nccl_version();
    if (r.has_library() && r.library().name() == "nccl") version = r.library().version();
    if (!r.has_range() || names[r.range().domain()] != "NCCL") continue;
    ranges[names[r.range().name()]] = r.range();
  }
  CHECK(version >= 20000);
  REQUIRE(ranges.count("ncclAllReduce") == 1);
  CHECK(ranges["ncclAllReduce"].bytes() == 4000);
  CHECK(ranges["ncclAllReduce"].reduction() == 2);
  CHECK(ranges["ncclAllReduce"].has_duration());
  CHECK(ranges["ncclReduceScatter"].bytes() == 20);
  CHECK(ranges["ncclReduceScatter"].has_reduction());
  CHECK(ranges["ncclAllGather"].bytes() == 77);
  CHECK(ranges["ncclBroadcast"].bytes() == 20);
  CHECK(ranges["ncclBroadcast"].root() == 3);
  CHECK(ranges["ncclSend"].bytes() == 33);
  CHECK(ranges["ncclSend"].peer() == 6);
  CHECK(ranges["ncclRecv"].peer() == 2);
}

TEST_CASE("only the steps that were asked for are recorded", "[capture]") {
  Recording recording;
  const Run run = recording.with("REHEARSE_CAPTURE_STEPS", "3-4").run({"steps", "8"});
  REQUIRE(run.code == 0);
  CHECK(run.err.empty());
  const auto records = recording.records();
  auto names = names_of(records);
  std::map<std::string, int> seen;
  for (const pb::CaptureRecord& r : records) {
    if (r.has_range()) ++seen[names[r.range().name()]];
  }
  CHECK(seen["iteration 3"] == 1);
  CHECK(seen["iteration 4"] == 1);
  CHECK(seen["work"] == 2);
  CHECK(seen["between"] == 1);  // the one between the two steps
  CHECK(seen["whole"] == 1);    // the first began before its step
  CHECK(seen.count("iteration 2") == 0);
  CHECK(seen.count("iteration 5") == 0);
}

TEST_CASE("kernels outside the steps that were asked for are not recorded", "[capture]") {
  Recording recording;
  const Run run = recording.with("REHEARSE_CAPTURE_STEPS", "2").with("RANK", "0").run({"job", "5"});
  REQUIRE(run.code == 0);
  const auto got = recording.import();
  if (!got) FAIL(got.error().message());
  CHECK(got->trace.ranks[0].steps.size() == 1);
  CHECK(got->trace.ranks[0].ops.calls.size() == 1);
  CHECK(count_named(*got, 0, "gemm") == 2);
}

TEST_CASE("only the stretch of time that was asked for is recorded", "[capture]") {
  Recording recording;
  // 400 steps of at least 2 ms each: the stretch lies inside.
  const Run run = recording.with("REHEARSE_CAPTURE_STEPS", "200ms-400ms").run({"steps", "400"});
  REQUIRE(run.code == 0);
  CHECK(run.err.empty());
  const auto records = recording.records();
  auto names = names_of(records);
  int64_t first = INT64_MAX, last = 0;
  for (const pb::CaptureRecord& r : records) {
    if (!r.has_range()) continue;
    first = std::min(first, r.range().start());
    last = std::max(last, r.range().start());
  }
  CHECK(first >= 200'000'000);
  CHECK(first < 300'000'000);
  CHECK(last > 300'000'000);
  CHECK(last <= 400'000'000);
  Recording early;
  const Run ended = early.with("REHEARSE_CAPTURE_STEPS", "60min-61min").run({"steps", "2"});
  CHECK(ended.code == 0);
  CHECK(ended.err.find("ended before the stretch of time") != std::string::npos);
}

TEST_CASE("steps that never came are told", "[capture]") {
  Recording recording;
  const Run run = recording.with("REHEARSE_CAPTURE_STEPS", "30-40").run({"steps", "4"});
  CHECK(run.code == 0);
  CHECK(run.err.find("no range named like step 30 was seen") != std::string::npos);
}

TEST_CASE("a helper process does not take the place of the rank that started it", "[capture]") {
  // Whichever file comes first.
  for (const bool helper_first : {false, true}) {
    Recording recording;
    recording.with("RANK", "0");
    const std::string job = (recording.temporary.path / (helper_first ? "b" : "a")).string();
    const std::string helper = (recording.temporary.path / (helper_first ? "a" : "b")).string();
    REQUIRE(recording.with("REHEARSE_CAPTURE_FOLDER", job).run({"job", "2"}).code == 0);
    REQUIRE(recording.with("REHEARSE_CAPTURE_FOLDER", helper).run({"ranges", "9", "0"}).code == 0);
    recording.folder = recording.temporary.path;
    const auto got = recording.import();
    if (!got) FAIL(got.error().message());
    REQUIRE(got->trace.ranks.size() == 1);
    CHECK(got->trace.ranks[0].ops.calls.size() == 2);
    CHECK(got->findings.count("helper-process") == 1);
    CHECK(got->findings.count("rank-twice") == 0);
  }
}

}  // namespace rehearse::capture_job_test
