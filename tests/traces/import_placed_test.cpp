// SPDX-License-Identifier: Apache-2.0
// Ranks of files that do not tell them.
#include <algorithm>
#include <catch2/catch.hpp>

#include "traces/import/placed.hpp"

namespace rehearse::import_placed_test {
using namespace rehearse;
using namespace rehearse::traces;

namespace {

// The ranks that files of these names get, one part each; a known one where it is not negative.
std::vector<std::pair<RankId, std::string>> placed(
    const std::vector<std::pair<std::string, int>>& files, Findings& findings) {
  std::vector<FilePart> parts;
  for (const auto& [file, rank] : files) {
    FilePart part;
    part.file = file;
    part.ranks.emplace_back();
    part.ranks.back().rank_known = rank >= 0;
    part.ranks.back().trace.rank = static_cast<RankId>(std::max(rank, 0));
    parts.push_back(std::move(part));
  }
  std::vector<std::pair<RankId, std::string>> out;
  for (const Placed& p : place_ranks(parts, findings)) out.emplace_back(p.part.trace.rank, p.file);
  return out;
}

using Ranks = std::vector<std::pair<RankId, std::string>>;

}  // namespace

TEST_CASE("files whose names differ in numbers are ranks in the order of these", "[import]") {
  Findings findings;
  CHECK(placed({{"a/t_0.json", -1}, {"a/t_1.json", -1}, {"a/t_10.json", -1}, {"a/t_2.json", -1}},
               findings) ==
        Ranks{{0, "a/t_0.json"}, {1, "a/t_1.json"}, {2, "a/t_2.json"}, {3, "a/t_10.json"}});
  CHECK(findings.count("rank-assumed") == 4);
  Findings others;
  CHECK(placed({{"b.json", -1}, {"a.json", -1}}, others) == Ranks{{0, "b.json"}, {1, "a.json"}});
  Findings mixed;
  CHECK(placed({{"x.json", 1}, {"t_9.json", -1}, {"t_4.json", -1}}, mixed) ==
        Ranks{{0, "t_4.json"}, {1, "x.json"}, {2, "t_9.json"}});
}

TEST_CASE("folders tell ranks where they tell all of them", "[import]") {
  Findings findings;
  CHECK(placed({{"job/rank_7/trace.json", -1}, {"job/rank_3/trace.json", -1}}, findings) ==
        Ranks{{3, "job/rank_3/trace.json"}, {7, "job/rank_7/trace.json"}});
  CHECK(findings.count("rank-from-name") == 2);
  CHECK(findings.count("rank-assumed") == 0);
  Findings one_folder;
  CHECK(placed({{"4rank2/b0.json", -1}, {"4rank2/b1.json", -1}}, one_folder) ==
        Ranks{{0, "4rank2/b0.json"}, {1, "4rank2/b1.json"}});
  CHECK(one_folder.count("rank-assumed") == 2);
}

}  // namespace rehearse::import_placed_test
