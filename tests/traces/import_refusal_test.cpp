// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "tests/traces/import_samples.hpp"

namespace rehearse::import_refusal_test {
using namespace rehearse;
using namespace rehearse::traces;
using samples::document;
using samples::import_text;
using samples::TempFolder;

namespace {

std::string kernel(int n, const std::string& name = "k") {
  return R"({"ph": "X", "cat": "kernel", "name": ")" + name + R"(", "pid": 0, "tid": 7, "ts": )" +
         std::to_string(n * 10) +
         R"(, "dur": 5, "args": {"device": 0, "stream": 7, "correlation": )" +
         std::to_string(n + 1) + "}}";
}

std::string kernels(int count) {
  std::string out;
  for (int i = 0; i < count; ++i) out += (i > 0 ? ",\n" : "") + kernel(i);
  return out;
}

void check_refused(const Result<Imported>& got, Code code, const std::string& what) {
  REQUIRE_FALSE(got);
  CHECK(got.error().code == code);
  CHECK_THAT(got.error().message(), Catch::Contains(what));
  CHECK_FALSE(got.error().where.empty());
  CHECK_FALSE(got.error().fix.empty());
}

}  // namespace

TEST_CASE("a file cut inside an event is refused with byte, event and what is whole",
          "[import][refusal]") {
  const std::string whole = document(kernels(20));
  const std::string cut = whole.substr(0, whole.find("\"ts\": 150"));
  const auto refused = import_text(cut);
  check_refused(refused, Code::kBadInput, "inside an event: 15 events are whole");
  CHECK_THAT(refused.error().where, Catch::Contains("byte") && Catch::Contains("event 15"));
  CHECK_THAT(refused.error().fix, Catch::Contains("--allow-truncated"));

  const auto taken = import_text(cut, {.cut_files = CutFiles::kAccept});
  REQUIRE(taken);
  CHECK(taken->trace.ranks[0].ops.size() == 15);
  CHECK(taken->findings.count("file-cut") == 1);
}

TEST_CASE("truncation at every hundredth is refused or marked", "[import][refusal]") {
  const std::string whole = document(kernels(300));
  for (const bool packed : {false, true}) {
    const std::string bytes = packed ? samples::gzip(whole) : whole;
    for (size_t percent = 0; percent < 100; ++percent) {
      const std::string cut = bytes.substr(0, bytes.size() * percent / 100);
      INFO(percent << " % " << (packed ? "gz" : "plain"));
      const auto refused = import_text(cut);
      REQUIRE_FALSE(refused);
      CHECK(refused.error().code == Code::kBadInput);
      const auto taken = import_text(cut, {.cut_files = CutFiles::kAccept});
      if (taken) {
        CHECK(taken->findings.count("file-cut") == 1);
        CHECK(taken->trace.ranks[0].ops.size() <= 300);
      }
    }
  }
}

TEST_CASE("flipped bits are refused or leave findings, and never crash", "[import][refusal]") {
  const std::string whole = document(kernels(40));
  for (size_t at = 0; at < whole.size(); at += 3) {
    for (const int bit : {0, 3, 6, 7}) {
      std::string damaged = whole;
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << bit));
      const auto got = import_text(damaged);
      if (got) CHECK(got->trace.ranks.size() == 1);
    }
  }
}

TEST_CASE("content that is no trace is refused with what it looks like", "[import][refusal]") {
  check_refused(import_text(""), Code::kBadInput, "an empty file");
  check_refused(import_text("hello world\n"), Code::kBadInput, "hello world");
  check_refused(import_text(R"({"a": 1, "b": 2})"), Code::kBadInput, "keys a, b");
  check_refused(import_text(std::string("\x7f"
                                        "ELF\0\0\0",
                                        7)),
                Code::kBadInput, "ELF");
  check_refused(import_text(R"({"traceEvents": 5})"), Code::kBadInput, "traceEvents");
  check_refused(import_text(R"({"traceEvents": []})"), Code::kBadInput, "none of its 0 events");
  check_refused(import_text(R"({"deviceProperties": []})"), Code::kBadInput, "no traceEvents");
  check_refused(import_text(R"({"traceEvents": [{"ph": "X"}] oops})"), Code::kBadInput, "not JSON");
}

TEST_CASE("a recording that another tool must convert is refused with that tool",
          "[import][refusal]") {
  const auto fix_of = [](const std::string& name) {
    const auto refused = import_text("\x01\x02\x03 recording", {}, name);
    check_refused(refused, Code::kBadInput, "binary data");
    return refused ? std::string() : refused.error().fix;
  };
  CHECK(fix_of("run.nsys-rep") == "nsys export --type sqlite --include-blobs=true run.nsys-rep");
  CHECK_THAT(fix_of("run.pftrace"), Catch::Contains("traceconv"));
  CHECK_THAT(fix_of("run.tgz"), Catch::Contains("unpack"));
  CHECK_THAT(fix_of("run.bin"), Catch::Contains("known are"));
}

TEST_CASE("words in brackets before a line are no JSON array", "[import][refusal]") {
  check_refused(import_text("[rank0]: Traceback (most recent call last):\n"), Code::kBadInput,
                "text that begins with \"[rank0]: Traceback");
  check_refused(import_text("[{\"a\": 1}]"), Code::kBadInput,
                "a JSON array that holds no trace events");
}

TEST_CASE("hostile documents meet limits", "[import][refusal]") {
  const std::string deep = std::string(100'000, '[') + std::string(100'000, ']');
  check_refused(import_text(document(kernel(0) + R"(,{"ph": "X", "args": )" + deep + "}")),
                Code::kLimit, "nested");
  check_refused(import_text(R"({"traceEvents": [], "x": )" + deep + "}"), Code::kLimit, "nested");
  const std::string huge(70 << 20, 'x');
  check_refused(import_text(document(R"({"ph": "X", "name": ")" + huge + "\"}")), Code::kLimit,
                "64 MiB");
}

TEST_CASE("a few bytes that tell of millions of ranks meet limits", "[import][refusal]") {
  const auto calls = [](int groups, const std::string& arguments) {
    std::string out;
    for (int i = 0; i < groups; ++i) {
      const std::string at = std::to_string(i + 1);
      out += i > 0 ? "," : "";
      out +=
          R"({"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce_Sum_f32_RING_LL", "pid": 0, "tid": 7, "ts": )" +
          at + R"(0, "dur": 5, "args": {"device": 0, "stream": 7, "correlation": )" + at +
          R"(, "Collective name": "allreduce", "Process Group Name": ")" + at + '"' + arguments +
          "}}";
    }
    return out;
  };
  const std::string million =
      R"(, "Group size": 1048576, "Global rank start": 0, "Global rank stride": 1)";
  check_refused(import_text(document(calls(40, million), 0, 8)), Code::kLimit, "members together");
  check_refused(import_text(document(calls(40, ""), 0, 1 << 20)), Code::kLimit, "members together");
  check_refused(import_text(document(calls(1, ""), 0, 1 << 22)), Code::kLimit, "4194304 ranks");
  CHECK(import_text(document(calls(1, ""), 0, 1 << 22), {.most_ranks = 1 << 22}));
  CHECK(import_text(document(calls(10, million), 0, 8)));
  const std::string far = "9223372036854775807";
  CHECK(import_text(document(calls(1, R"(, "Group size": 3, "Global rank start": )" + far +
                                          R"(, "Global rank stride": )" + far),
                             0, 8)));
}

TEST_CASE("a name of ten megabytes is shortened", "[import][refusal]") {
  const auto got = import_text(document(kernel(0) + "," + kernel(1, std::string(10 << 20, 'n'))));
  REQUIRE(got);
  CHECK(got->findings.count("name-shortened") == 1);
  CHECK(got->trace.ranks[0].ops.size() == 2);
}

TEST_CASE("cut and bombed gzip traces are refused", "[import][refusal]") {
  const std::string packed = samples::gzip(document(kernels(2000)));
  check_refused(import_text(packed.substr(0, packed.size() / 2)), Code::kBadInput,
                "events are whole");
  check_refused(
      import_text(samples::gzip(R"({"traceEvents": [)" + std::string(200 << 20, ' ') + "]}")),
      Code::kLimit, "unpack");
}

TEST_CASE("nothing, missing files and empty globs are refused", "[import][refusal]") {
  SilentReporter silent;
  const TempFolder folder;
  CHECK(import_files({}, {}, silent).error().code == Code::kUsage);
  CHECK(import_files({"/nowhere/x.json"}, {}, silent).error().code == Code::kMissingInput);
  CHECK(import_files({folder.path() / "*.json"}, {}, silent).error().code == Code::kMissingInput);
  CHECK(import_files({folder.path()}, {}, silent).error().code == Code::kBadInput);
}

TEST_CASE("a folder of ranks becomes one trace, other files are skipped by name", "[import]") {
  SilentReporter silent;
  const TempFolder folder;
  folder.write("sub/b.json", document(kernels(2), 1, 3));
  folder.write("a.json.gz", samples::gzip(document(kernels(3), 0, 3)));
  folder.write("c.json.zst", samples::zstd(document(kernels(4), 2, 3)));
  folder.write("README.md", "# notes\n");
  const auto got = import_files({folder.path()}, {}, silent);
  REQUIRE(got);
  REQUIRE(got->trace.ranks.size() == 3);
  CHECK(got->trace.ranks[0].ops.size() == 3);
  CHECK(got->trace.ranks[1].ops.size() == 2);
  CHECK(got->trace.ranks[2].ops.size() == 4);
  CHECK(got->findings.count("file-skipped") == 1);
  CHECK(got->findings.count("ranks-missing") == 0);
  CHECK(got->trace.header.inputs_size() == 3);
  CHECK(got->trace.header.inputs(0).xxh3() != 0);
  const auto globbed = import_files({folder.path() / "*.json*"}, {}, silent);
  REQUIRE(globbed);
  CHECK(globbed->trace.ranks.size() == 2);
}

TEST_CASE("a folder's files that are whole but hold no operation are passed over, damaged ones not",
          "[import]") {
  SilentReporter silent;
  const TempFolder folder;
  const std::string timeline =
      R"([{"name": "forward", "cat": "forward-compute", "pid": 0, "tid": 0, "ts": 1.5, "dur": 2, "ph": "X"}])";
  const auto other = folder.write("timeline.json", timeline);
  check_refused(import_files({folder.path()}, {}, silent), Code::kBadInput, "none of its 1 events");
  folder.write("rank0.json", document(kernels(3)));
  const auto got = import_files({folder.path()}, {}, silent);
  REQUIRE(got);
  CHECK(got->trace.ranks.size() == 1);
  CHECK(got->inputs.size() == 1);
  CHECK(got->findings.count("file-ignored") == 1);
  CHECK(got->findings.count("unknown-category") == 0);
  check_refused(import_files({other, folder.path() / "rank0.json"}, {}, silent), Code::kBadInput,
                "none of its 1 events");
  folder.write("rank1.json", document(kernels(3)).substr(0, 200));
  check_refused(import_files({folder.path()}, {}, silent), Code::kBadInput, "the file ends");
}

TEST_CASE("a rank twice and mixed jobs are told", "[import]") {
  SilentReporter silent;
  const TempFolder folder;
  const auto a = folder.write("a.json", document(kernels(2), 0, 2));
  const auto b = folder.write("b.json", document(kernels(3), 0, 2));
  const auto c = folder.write("c.json", document(kernels(3), 1, 8));
  const auto twice = import_files({a, b}, {}, silent);
  REQUIRE(twice);
  CHECK(twice->findings.count("rank-twice") == 1);
  CHECK(twice->trace.ranks.size() == 1);
  const auto mixed = import_files({a, c}, {}, silent);
  REQUIRE(mixed);
  CHECK(mixed->findings.count("mixed-jobs") == 1);
}

}  // namespace rehearse::import_refusal_test
