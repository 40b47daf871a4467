// SPDX-License-Identifier: Apache-2.0
#include "base/sparkline.hpp"

#include <catch2/catch.hpp>
#include <vector>

namespace rehearse::sparkline_test {

TEST_CASE("a sparkline scales from nothing to the largest value", "[base]") {
  CHECK(sparkline(std::vector<double>{0, 1, 2, 4}) == "▁▃▅█");
  CHECK(sparkline(std::vector<double>{0, 0}) == "▁▁");
  CHECK(sparkline({}).empty());
}

TEST_CASE("a sparkline of many values keeps the largest of each stretch", "[base]") {
  std::vector<double> values(4000, 1);
  values[2050] = 8;
  const std::string line = sparkline(values);
  CHECK(line.size() == 40 * std::string("█").size());
  CHECK(line.find("█") == 20 * std::string("█").size());
}

}  // namespace rehearse::sparkline_test
