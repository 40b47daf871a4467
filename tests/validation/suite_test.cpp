// SPDX-License-Identifier: Apache-2.0
#include "validation/suite.hpp"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "tests/temporary_folder.hpp"

namespace rehearse::validation::suite_test {

TEST_CASE("without a data folder checks that need none run and the others are named",
          "[validation][suite]") {
  SilentReporter reporter;
  const auto checks = run_suite({}, reporter);
  REQUIRE(checks);
  size_t skipped = 0, judged = 0;
  for (const Check& check : *checks) {
    INFO(check.id << ": " << check.why);
    (check.skipped ? skipped : judged) += 1;
    if (check.skipped) CHECK_THAT(check.why, Catch::Contains("--data"));
    if (!check.skipped) CHECK(check.n > 0);
  }
  CHECK(judged >= 3);
  CHECK(skipped >= 5);
}

TEST_CASE("what of a data folder cannot be used is told with the reason", "[validation][suite]") {
  const tests::TemporaryFolder scratch;
  const auto job = scratch.path / "kineto" / "somebody-elses" / "job";
  std::filesystem::create_directories(job);
  std::filesystem::create_directories(scratch.path / "nccl");
  std::ofstream(job / "rank0.json") << "{\"traceEvents\": [{\"ph\": ";
  std::ofstream table(scratch.path / "nccl" / "nccl_tests.csv");
  table << "collective,bytes,time_us_oop,hardware,nodes,gpus\n";
  for (int i = 0; i < 4; ++i) {
    table << "all_reduce," << (1 << (20 + i)) << ',' << 40 + 10 * i
          << ",NVIDIA H100 80GB HBM3,1,8\n";
  }
  table << "hypercube,1048576,40,NVIDIA H100 80GB HBM3,1,8\n"
        << "all_reduce,1048576,40,NVIDIA Z9000,1,8\n";
  table.close();
  SuiteOptions options;
  options.data = scratch.path;
  options.only = {"collectives", "replay"};
  SilentReporter silent;
  const auto checks = run_suite(options, silent);
  REQUIRE(checks);
  std::string told;
  for (const Check& check : *checks) {
    CHECK_FALSE((check.met && check.rows.empty()));
    for (const std::string& note : check.assumptions) told += note + "\n";
  }
  CHECK_THAT(told, Catch::Contains("rank0.json") && Catch::Contains("hypercube") &&
                       Catch::Contains("Z9000"));
}

TEST_CASE("a part that there is none of is refused with those there are",
          "[validation][suite][refusal]") {
  SilentReporter reporter;
  const auto checks = run_suite({{}, {"collective"}}, reporter);
  REQUIRE_FALSE(checks);
  CHECK(checks.error().code == Code::kUsage);
  CHECK_THAT(checks.error().fix, Catch::Contains("collectives"));
}

}  // namespace rehearse::validation::suite_test
