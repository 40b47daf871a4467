// SPDX-License-Identifier: Apache-2.0
#include "validation/suite.hpp"

#include <catch2/catch.hpp>

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

TEST_CASE("a part that there is none of is refused with those there are",
          "[validation][suite][refusal]") {
  SilentReporter reporter;
  const auto checks = run_suite({{}, {"collective"}}, reporter);
  REQUIRE_FALSE(checks);
  CHECK(checks.error().code == Code::kUsage);
  CHECK_THAT(checks.error().fix, Catch::Contains("collectives"));
}

}  // namespace rehearse::validation::suite_test
