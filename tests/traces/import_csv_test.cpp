// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "tests/project.hpp"
#include "tests/traces/import_samples.hpp"
#include "traces/import/csv/csv.hpp"
#include "traces/program/program.hpp"

namespace rehearse::import_csv_test {
using namespace rehearse;
using namespace rehearse::traces;
using namespace rehearse::traces::samples;

namespace {

constexpr const char* kHeader =
    "dp_rank,stage,rank,step,optype,start_ts,duration,seq_id,mc,mb_id,gmc\n";

// Two stages, one micro-batch, two steps.
std::string pipeline() {
  std::string text = kHeader;
  for (const std::string step : {"5", "9"}) {
    text += "0,0,0," + step + ",forward-compute,0.1,0.2,0,0,0,0\n";
    text += "0,0,0," + step + ",forward-send,0.3,0.01,0,-1,-1,-1\n";
    text += "0,0,0," + step + ",backward-recv,0.31,0.29,0,-1,-1,-1\n";
    text += "0,0,0," + step + ",backward-compute,0.6,0.1,0,0,0,0\n";
    text += "0,0,0," + step + ",optimizer-clip-main-grad,0.7,0.05,0,-1,-1,-1\n";
    text += "0,1,1," + step + ",forward-recv,0.0,0.31,0,-1,-1,-1\n";
    text += "0,1,1," + step + ",forward-compute,0.31,0.1,0,0,0,0\n";
    text += "0,1,1," + step + ",backward-compute,0.41,1.8e-1,0,0,0,0\n";
    text += "0,1,1," + step + ",backward-send,0.59,0.01,0,-1,-1,-1\n";
    text += "0,1,1," + step + ",gc,0.6,0,0,-1,0,-1\n";
    text += "0,1,1," + step + ",optimizer-clip-main-grad,0.6,0.15,0,-1,-1,-1\n";
  }
  return text;
}

Result<Imported> mapped(const std::string& text, const std::string& mapping,
                        const ImportOptions& options = {}) {
  const TempFolder folder;
  SilentReporter silent;
  ImportOptions with = options;
  with.columns = folder.write("columns.yaml", mapping);
  return import_files({folder.write("table.csv", text)}, with, silent);
}

constexpr const char* kPlain =
    "columns: {rank: r, operation: o, start: {column: t, unit: us}, duration: {column: d, unit: "
    "ms}, bytes: b}\n"
    "operations:\n  k: kernel\n  a: {kind: all-gather}\n  x: ignore\n";

}  // namespace

TEST_CASE("a table of the straggler study becomes ranks, steps, collectives and pairs",
          "[import][csv]") {
  const auto got = import_text(pipeline(), {}, "trace.csv");
  if (!got) FAIL(got.error().message());
  const Trace& trace = got->trace;
  CHECK(got->inputs[0].format == "csv");
  REQUIRE(trace.ranks.size() == 2);
  for (const RankTrace& r : trace.ranks) {
    CHECK(count_of(r, OpKind::kKernel) == 4);
    CHECK(count_of(r, OpKind::kCall) == 6);
    REQUIRE(r.steps.size() == 2);
    CHECK(r.steps[0].number == 5);
    CHECK(r.steps[0].start == 0);
    CHECK(r.steps[0].end == 750'000'000);
    CHECK(r.steps[1].start == 750'000'000);
    CHECK(r.steps[1].number == 9);
  }
  const auto clip = find_op(*got, "optimizer-clip-main-grad");
  REQUIRE(clip);
  CHECK(trace.ranks[0].ops.start[*clip] == 700'000'000);
  const auto send = find_op(*got, "forward-send", 0), receive = find_op(*got, "forward-recv", 1);
  REQUIRE((send && receive));
  const Call &s = *trace.ranks[0].ops.call(*send), &r = *trace.ranks[1].ops.call(*receive);
  CHECK(s.communicator == r.communicator);
  CHECK(trace.communicators[s.communicator].members == std::vector<RankId>{0, 1});
  CHECK(s.peer == 1);
  CHECK(r.peer == 0);
  CHECK(got->findings.count("steps-laid-out") == 1);
  CHECK(got->findings.count("collective-without-size") == 12);
  CHECK(got->findings.count("peer-missing") == 0);
}

TEST_CASE("operations of a serial table wait for those before them, batched ones run together",
          "[import][csv]") {
  std::string text = kHeader;
  text += "0,0,0,1,forward-compute,0,0.2,0,0,0,0\n";
  text += "0,0,0,1,forward-send,0.2,0.3,0,-1,-1,-1\n";
  text += "0,0,0,1,backward-recv,0.2,0.4,0,-1,-1,-1\n";
  text += "0,0,0,1,backward-compute,0.6,0.1,0,0,0,0\n";
  text += "0,1,1,1,forward-recv,0,0.5,0,-1,-1,-1\n";
  text += "0,1,1,1,backward-send,0.5,0.1,0,-1,-1,-1\n";
  const auto got = import_text(text, {}, "trace.csv");
  REQUIRE(got);
  const auto program = build_program(got->trace);
  REQUIRE(program);
  const RankProgram& rank = program->ranks[0];
  // The host launches, waits for the compute, launches both, waits for both, launches.
  std::vector<OpKind> host;
  for (OpId op = rank.lane_begin[0]; op < rank.lane_begin[1]; ++op) host.push_back(rank.kind[op]);
  using K = OpKind;
  CHECK(host == std::vector<OpKind>{K::kLaunch, K::kSync, K::kLaunch, K::kLaunch, K::kSync,
                                    K::kSync, K::kLaunch, K::kSync});
}

TEST_CASE("a table with columns of its own is read by a mapping", "[import][csv]") {
  const auto got = mapped(
      "r,t,d,o,b\n0,1.5,0.25,k,\n0,400,1,a,100\n1,402,1,a,100\n0,1,1,x,\n0,1,1,other,\n", kPlain);
  if (!got) FAIL(got.error().message());
  const RankTrace& r = got->trace.ranks[0];
  REQUIRE(r.ops.size() == 2);
  CHECK(r.ops.start[0] == 1500);
  CHECK(r.ops.duration[0] == 250'000);
  REQUIRE(r.ops.calls.size() == 1);
  CHECK(r.ops.calls[0].bytes_in == 100);
  CHECK(r.ops.calls[0].bytes_out == 200);
  CHECK(got->findings.count("operation-unknown") == 1);
}

TEST_CASE("quotes, other separators and line ends are read", "[import][csv]") {
  const std::string mapping =
      "separator: \"\\t\"\ncolumns: {operation: \"what, then\", start: {column: t, unit: ns}, end: "
      "{column: e, unit: "
      "ns}}\noperations: {\"a \\\"b\\\"\": kernel}\n";
  const auto got =
      mapped("t\te\t\"what, then\"\r\n1\t5\t\"a \"\"b\"\"\"\r\n\r\n7\t8\t\"a \"\"b\"\"\"", mapping);
  if (!got) FAIL(got.error().message());
  REQUIRE(got->trace.ranks[0].ops.size() == 2);
  CHECK(got->trace.ranks[0].ops.duration[0] == 4);
  CHECK(got->findings.count("last-line-open") == 1);
  CHECK(got->findings.count("rank-assumed") == 1);
}

TEST_CASE("mappings that make no sense are refused with their place", "[import][csv][refusal]") {
  const auto refused = [](const std::string& mapping) {
    const auto got = mapped("r,t,d,o,b\n0,1,1,k,\n", mapping);
    REQUIRE_FALSE(got);
    CHECK(got.error().code == Code::kBadInput);
    CHECK_THAT(got.error().where, Catch::Contains("columns.yaml"));
    return got.error().message();
  };
  CHECK_THAT(refused("columns: {operatoin: o}\n"),
             Catch::Contains("columns.yaml:1:") && Catch::Contains("operation"));
  CHECK_THAT(refused("operations: {k: kernl}\n"),
             Catch::Contains("columns.yaml:1:") && Catch::Contains("kernel"));
  CHECK_THAT(refused("operations: {k: kernel}\n"), Catch::Contains("columns.operation"));
  CHECK_THAT(refused("columns: {operation: o, start: {column: t}}\n"), Catch::Contains("unit"));
  CHECK_THAT(
      refused("columns: {operation: o, start: {column: t, unit: s}}\noperations: {k: kernel}\n"),
      Catch::Contains("duration or end"));
  const std::string base =
      "columns: {operation: o, start: {column: t, unit: s}, duration: {column: d, unit: s}}\n";
  CHECK_THAT(refused(base), Catch::Contains("operations"));
  CHECK_THAT(refused(base + "operations: {k: send}\n"), Catch::Contains("toward"));
  CHECK_THAT(refused(base + "times: within-step\noperations: {k: kernel}\n"),
             Catch::Contains("step"));
  CHECK_THAT(refused(base + "separator: ab\noperations: {k: kernel}\n"),
             Catch::Contains("separator"));
}

TEST_CASE("a table without the columns of the mapping is refused with those it lacks",
          "[import][csv][refusal]") {
  const auto got = mapped("r,t,dd,o,b\n0,1,1,k,\n", kPlain);
  REQUIRE_FALSE(got);
  CHECK_THAT(got.error().message(),
             Catch::Contains("no column 'd'") && Catch::Contains("table.csv:1"));
  const auto one = mapped("r;t;d;o;b\n0;1;1;k;\n", kPlain);
  REQUIRE_FALSE(one);
  CHECK_THAT(one.error().message(), Catch::Contains("change the separator"));
  const auto unknown = import_text("a,b,c\n1,2,3\n", {}, "x.csv");
  REQUIRE_FALSE(unknown);
  CHECK_THAT(unknown.error().message(), Catch::Contains("no known trace format"));
}

TEST_CASE("rows that cannot be used are findings", "[import][csv][refusal]") {
  const auto got = mapped(
      "r,t,d,o,b\n0,1,1,k,\nx,1,1,k,\n-1,1,1,k,\n0,abc,1,k,\n0,1e300,1,k,\n0,1,-5,k,\n0,1,1\n"
      "0,1,1,k,,9\n99999999999,1,1,k,\n0,1,1,a,-7\n",
      kPlain);
  if (!got) FAIL(got.error().message());
  CHECK(got->findings.count("row-without-rank") == 3);
  CHECK(got->findings.count("row-without-time") == 2);
  CHECK(got->findings.count("negative-duration") == 1);
  CHECK(got->findings.count("row-of-other-length") == 2);
  CHECK(got->trace.ranks[0].ops.size() == 3);
}

TEST_CASE("a table of which no row can be used says why", "[import][csv][refusal]") {
  const auto late = mapped("r,t,d,o,b\n0,1e300,1,k,\n0,abc,1,k,\n", kPlain);
  REQUIRE_FALSE(late);
  CHECK_THAT(late.error().message(), Catch::Contains("2 row-without-time"));
  const auto other = mapped("r,t,d,o,b\n0,1,1,other,\n", kPlain);
  REQUIRE_FALSE(other);
  CHECK_THAT(other.error().message(), Catch::Contains("add them to the mapping"));
}

TEST_CASE("a table cut at every hundredth is refused, or marked", "[import][csv][refusal]") {
  const std::string whole = pipeline();
  for (size_t percent = 0; percent < 100; ++percent) {
    INFO(percent << " %");
    for (const bool packed : {false, true}) {
      const std::string bytes = packed ? gzip(whole) : whole;
      const std::string cut = bytes.substr(0, bytes.size() * percent / 100);
      const auto got = import_text(cut, {}, "trace.csv");
      const bool at_line = !packed && !cut.empty() && cut.back() == '\n';
      // Without an end mark a table cut between lines is whole.
      if (got && !at_line) CHECK(got->findings.count("last-line-open") == 1);
      if (!got) CHECK_FALSE(got.error().fix.empty());
      const auto taken = import_text(cut, {.cut_files = CutFiles::kAccept}, "trace.csv");
      if (taken && !got) CHECK(taken->findings.count("file-cut") == 1);
    }
  }
}

TEST_CASE("flipped bits in a table never crash it", "[import][csv][refusal]") {
  const std::string whole = pipeline();
  for (size_t at = 0; at < whole.size(); at += 5) {
    for (const int bit : {0, 5}) {
      std::string damaged = whole;
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << bit));
      const auto got = import_text(damaged, {}, "trace.csv");
      if (!got) CHECK_FALSE(got.error().what.empty());
    }
  }
}

TEST_CASE("a duplicate row is an operation of its own, a rank in two tables is told",
          "[import][csv]") {
  const std::string row = "0,1,1,k,\n";
  const auto twice = mapped("r,t,d,o,b\n" + row + row, kPlain);
  REQUIRE(twice);
  CHECK(twice->trace.ranks[0].ops.size() == 2);
  const TempFolder folder;
  SilentReporter silent;
  const auto a = folder.write("a.csv", pipeline()), b = folder.write("b.csv", pipeline());
  const auto got = import_files({a, b}, {}, silent);
  REQUIRE(got);
  CHECK(got->findings.count("rank-twice") == 2);
}

TEST_CASE("the size of a job comes from a file beside its table", "[import][csv]") {
  const TempFolder folder;
  SilentReporter silent;
  const auto table = folder.write("trace.csv", pipeline());
  const std::string job =
      "trial_name: SE\nrun_id: 0\ndp_size: 32\ndsp_size: 2\npp_size: 2\ntp_size: 1\nvpp_size: 1\n";
  const auto meta = folder.write("meta.yaml", job + "world_size: 128\n");
  const auto got = import_files({table, meta}, {}, silent);
  if (!got) FAIL(got.error().message());
  CHECK(got->trace.header.world_size() == 128);
  CHECK(got->trace.header.job() == "SE");
  const auto alone = import_files({meta}, {}, silent);
  REQUIRE_FALSE(alone);
  const auto wrong = import_text(job + "world_size: many\n", {}, "meta.yaml");
  REQUIRE_FALSE(wrong);
  CHECK_THAT(wrong.error().where, Catch::Contains("meta.yaml:8:"));
}

TEST_CASE("every shipped mapping loads and says where it comes from", "[import][csv]") {
  const auto folder = tests::project() / "traces/import/csv/mappings";
  size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    INFO(entry.path().string());
    const auto mapping = csv::load_mapping(entry.path().string());
    if (!mapping) FAIL(mapping.error().message());
    CHECK_FALSE(mapping->source().empty());
    ++files;
  }
  CHECK(files > 0);
}

}  // namespace rehearse::import_csv_test
