// SPDX-License-Identifier: Apache-2.0
#include "validation/statistics.hpp"

#include <catch2/catch.hpp>

#include "validation/accuracy_page.hpp"
#include "validation/check.hpp"

namespace rehearse::validation::statistics_test {

TEST_CASE("quantiles lie between neighbours", "[validation][statistics]") {
  CHECK(quantile({1, 2, 3, 4}, .5) == Approx(2.5));
  CHECK(quantile_of({4, 1, 3, 2}, 1) == Approx(4));
  CHECK(quantile({}, .5) == 0);
}

TEST_CASE("tau is 1 for the same order, -1 for the reverse, and forgives ties",
          "[validation][statistics]") {
  CHECK(kendall_tau({1, 2, 3}, {10, 20, 30}) == Approx(1));
  CHECK(kendall_tau({1, 2, 3}, {3, 2, 1}) == Approx(-1));
  CHECK(kendall_tau({1, 1, 2}, {1, 2, 3}) > .8);
  CHECK(kendall_tau({1, 1}, {1, 2}) == 0);
}

TEST_CASE("the interval of a median is drawn over groups", "[validation][statistics]") {
  // A few say nothing of what others would be.
  std::vector<GroupedError> errors(50, {"0", .1});
  CHECK_FALSE(median_interval(errors));
  for (int i = 0; i < 50; ++i) errors.push_back({"1", .3});
  CHECK_FALSE(median_interval(errors));
  for (const char* group : {"2", "3", "4", "5"}) errors.push_back({group, .2});
  const auto interval = median_interval(errors);
  REQUIRE(interval);
  CHECK(interval->low == Approx(.1));
  CHECK(interval->high == Approx(.3));
}

TEST_CASE("an interval holds the figure that it is of", "[validation][statistics]") {
  // One large group decides the median of all rows, and few of the draws.
  std::vector<GroupedError> errors(200, {"large", .01});
  for (int i = 0; i < 20; ++i) errors.push_back({std::to_string(i), .5});
  const auto interval = median_interval(errors);
  REQUIRE(interval);
  CHECK(interval->low <= .01);
  CHECK(interval->high >= .01);
  // An even number of rows: between the two in the middle, in both.
  std::vector<GroupedError> even;
  for (int i = 0; i < 6; ++i) even.push_back({std::to_string(i), .1 * i});
  CHECK(median_interval(even)->low <= .25);
}

TEST_CASE("a check is met when median and 9 of 10 are", "[validation][statistics]") {
  Check check;
  check.target = .1;
  check.p90_target = .2;
  for (const double predicted : {1.05, 1.05, 1.05, 1.5}) {
    check.rows.push_back({"row", "", predicted, 1, "s", "", "", 0, 0});
  }
  Check median_only = check;
  median_only.p90_target = 0;
  judge_median(check);
  judge_median(median_only);
  CHECK(check.n == 4);
  CHECK(check.median_error == Approx(.05));
  CHECK_FALSE(check.met);
  CHECK(median_only.met);
  const std::string page = accuracy_page({check, skipped_check("other", "what", "no data")});
  CHECK(page.find("**no**") != std::string::npos);
  CHECK(page.find("skipped") != std::string::npos);
}

TEST_CASE("a check without rows is skipped, not met", "[validation][statistics]") {
  Check check;
  judge_median(check);
  CHECK(check.skipped);
  CHECK_FALSE(check.met);
}

}  // namespace rehearse::validation::statistics_test
