// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"

#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "base/rank_ranges.hpp"

namespace rehearse::text_test {
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

TEST_CASE("ranges of ranks are read as they are printed", "[base]") {
  const auto ranges = parse_rank_ranges("0-7,16");
  REQUIRE(ranges);
  REQUIRE(ranges->size() == 2);
  CHECK(ranges->front().holds(7));
  CHECK_FALSE(ranges->front().holds(8));
  CHECK(ranges->back().holds(16));
  for (const char* wrong : {"", "7-0", "a", "1-", "-1", "1,,2", "4294967296"}) {
    INFO(wrong);
    CHECK_FALSE(parse_rank_ranges(wrong));
  }
}

TEST_CASE("text of a user is shortened and made harmless for messages", "[base]") {
  CHECK(in_quotes("a\nb\x1b[0m") == "'a b [0m'");
  CHECK(in_quotes(std::string(100, 'x')) == fmt::format("'{}...'", std::string(60, 'x')));
  const std::string cut_inside =
      "12345678901234567890123456789012345678901234567890123456789\u6f22";
  CHECK(invalid_utf8(in_quotes(cut_inside)) == std::string::npos);
}

TEST_CASE("bytes that are not UTF-8 are found", "[base]") {
  CHECK(invalid_utf8("a\u00e9\u6f22\U0001f600") == std::string::npos);
  CHECK(invalid_utf8("ab\xff") == 2);
  CHECK(invalid_utf8("\xc0\x80") == 0);          // overlong
  CHECK(invalid_utf8("\xed\xa0\x80") == 0);      // surrogate
  CHECK(invalid_utf8("\xf4\x90\x80\x80") == 0);  // past U+10FFFF
  CHECK(invalid_utf8("x\xe6\xbc") == 1);         // cut
}

}  // namespace rehearse::text_test
