// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"

#include <catch2/catch.hpp>

using namespace rehearse;

TEST_CASE("nearest finds the key somebody meant", "[base]") {
  const std::vector<std::string> keys = {"platform", "trace", "launch", "seed"};
  CHECK(nearest("platfrom", keys) == "platform");
  CHECK(nearest("Plat-form", keys) == "platform");
  CHECK(nearest("zzzzzz", keys).empty());
}

TEST_CASE("ranks are printed as ranges", "[base]") {
  const std::vector<uint32_t> ranks = {0, 1, 2, 5, 7, 8};
  CHECK(format_ranks(ranks) == "0-2,5,7,8");
  CHECK(format_ranks({}).empty());
}
