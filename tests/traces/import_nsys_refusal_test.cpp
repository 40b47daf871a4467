// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "tests/traces/import_samples.hpp"
#include "tests/traces/nsys_samples.hpp"

namespace rehearse::import_nsys_refusal_test {
using namespace rehearse;
using namespace rehearse::traces;
using namespace rehearse::traces::samples;

namespace {

std::string sample() {
  std::string sql = nsys_tables();
  for (int i = 0; i < 400; ++i) {
    sql += kernel(10 + i % 2, i % 2, 7, i + 1, 100L * i + 50, 100L * i + 90);
    sql += runtime(10 + i % 2, 1, i + 1, 100L * i, 100L * i + 10);
    sql += range(10 + i % 2, 1, 100L * i, 100L * i + 40, "aten::mul, op_id = " + std::to_string(i));
  }
  return database(sql);
}

}  // namespace

TEST_CASE("an export cut at every hundredth is refused, or taken and marked",
          "[import][nsys][refusal]") {
  const std::string whole = sample();
  size_t last = 0;
  for (size_t percent = 0; percent < 100; ++percent) {
    INFO(percent << " %");
    const std::string cut = whole.substr(0, whole.size() * percent / 100);
    const auto refused = import_text(cut, {}, "run.sqlite");
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == Code::kBadInput);
    CHECK_FALSE(refused.error().where.empty());
    CHECK_FALSE(refused.error().fix.empty());
    const auto taken = import_text(cut, {.cut_files = CutFiles::kAccept}, "run.sqlite");
    if (!taken) continue;
    CHECK(taken->findings.count("file-cut") == 1);
    last = std::max(last, taken->trace.operations());
  }
  CHECK(last > 400);
  CHECK(import_text(whole, {}, "run.sqlite"));
}

TEST_CASE("a cut export says how much is missing", "[import][nsys][refusal]") {
  const std::string whole = sample();
  const auto refused = import_text(whole.substr(0, whole.size() / 2), {}, "run.sqlite");
  REQUIRE_FALSE(refused);
  CHECK_THAT(refused.error().message(), Catch::Contains("ends early") && Catch::Contains("byte") &&
                                            Catch::Contains("nsys export") &&
                                            Catch::Contains("--allow-truncated"));
}

TEST_CASE("flipped bits in an export never crash it", "[import][nsys][refusal]") {
  const std::string whole = sample();
  size_t refused = 0, read = 0;
  for (size_t at = 0; at < whole.size(); at += at < 4096 ? 61 : 499) {
    for (const auto cut : {CutFiles::kRefuse, CutFiles::kAccept}) {
      std::string damaged = whole;
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << (at % 8)));
      const auto got = import_text(damaged, {.cut_files = cut}, "run.sqlite");
      ++(got ? read : refused);
      if (!got) CHECK_FALSE(got.error().what.empty());
    }
  }
  CHECK(refused > 0);
  CHECK(read > 0);
}

TEST_CASE("databases of another kind, views and empty exports are refused",
          "[import][nsys][refusal]") {
  const auto other = import_text(database("CREATE TABLE users (id INTEGER);"), {}, "x.sqlite");
  REQUIRE_FALSE(other);
  CHECK_THAT(other.error().message(), Catch::Contains("none of Nsight Systems"));
  const auto view =
      import_text(database("CREATE TABLE t (start INTEGER); CREATE VIEW NVTX_EVENTS AS SELECT * "
                           "FROM t;"),
                  {}, "x.sqlite");
  REQUIRE_FALSE(view);
  CHECK_THAT(view.error().message(), Catch::Contains("none of Nsight Systems"));
  const auto empty = import_text(database(nsys_tables()), {}, "x.sqlite");
  REQUIRE_FALSE(empty);
  CHECK_THAT(empty.error().message(),
             Catch::Contains("no GPU work") && Catch::Contains("nsys profile"));
  const auto nothing = import_text(std::string("SQLite format 3\0", 16), {}, "x.sqlite");
  REQUIRE_FALSE(nothing);
  CHECK(nothing.error().code == Code::kBadInput);
}

TEST_CASE("a database of nvprof is refused by its name", "[import][nsys][refusal]") {
  const auto refused = import_text(
      database(
          "CREATE TABLE StringTable (_id_ INTEGER PRIMARY KEY AUTOINCREMENT, value TEXT UNIQUE);"
          "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (_id_ INTEGER PRIMARY KEY, cbid INT, start INT,"
          " end INT, processId INT, threadId INT, correlationId INT, returnValue INT);"
          "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (1, 17, 5, 9, 1, 1, 1, 0);"
          "CREATE TABLE CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL (_id_ INTEGER PRIMARY KEY, name "
          "INT);"),
      {}, "run.nvvp");
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == Code::kBadInput);
  CHECK_THAT(refused.error().what, Catch::Contains("nvprof"));
  CHECK_THAT(refused.error().fix, Catch::Contains("nsys profile"));
}

TEST_CASE("hostile values in an export are findings", "[import][nsys][refusal]") {
  const auto got = import_text(
      database(nsys_tables() +
               kernel(10, 0, 7, 1, 9'000'000'000'000'000'000L, 9'100'000'000'000'000'000L) +
               kernel(10, 0, 7, 1, 5, -9'000'000'000'000'000'000L) + kernel(10, 0, 7, 1, 5, 9) +
               "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES ('a', x'00', 1.5, 'b', NULL, 'c', " +
               global(10) + ", 'd', 'e');" +
               range(10, 1, 1, 2, "ncclAllReduce", R"({"Message size [bytes]":-5})") +
               range(10, 1, 1, 2, "ncclAllReduce", "[not json") +
               range(10, 1, 1, 2, "ncclAllReduce",
                     R"({"NCCL communicator ID":"18,446,744,073,709,551,615"})")),
      {}, "x.sqlite");
  if (!got) FAIL(got.error().message());
  CHECK(got->findings.count("event-without-time") == 3);
  CHECK(got->findings.count("payload-unreadable") == 1);
  CHECK(count_of(got->trace.ranks[0], OpKind::kKernel) == 1);
}

}  // namespace rehearse::import_nsys_refusal_test
