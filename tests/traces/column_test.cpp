// SPDX-License-Identifier: Apache-2.0
#include "traces/program/column.hpp"

#include <catch2/catch.hpp>
#include <utility>

#include "traces/program/program.hpp"

namespace rehearse::column_test {
using namespace rehearse;
using namespace rehearse::traces;

TEST_CASE("a column that is written to leaves those it shared with alone", "[traces][program]") {
  Column<uint32_t> a(std::vector<uint32_t>{1, 2, 3});
  Column<uint32_t> b = a;
  CHECK(b.shares_with(a));
  b[1] = 7;
  CHECK_FALSE(b.shares_with(a));
  CHECK(std::as_const(a)[1] == 2);
  CHECK(std::as_const(b)[1] == 7);
  b[1] = 2;
  CHECK(b == a);
  CHECK(b.share(a));
  CHECK(b.shares_with(a));
}

TEST_CASE("a column of repeated steps reads as if it were written out", "[traces][program]") {
  // Two lanes: a | b c | d, and - | e | -, steps three times.
  const auto repeat =
      std::make_shared<const Repeat>(std::vector<Repeat::Lane>{{0, 1, 2, 1}, {4, 0, 1, 0}}, 3);
  const std::vector<uint32_t> expected = {10, 11, 12, 11, 12, 11, 12, 13, 14, 14, 14};
  Column<uint32_t> column(std::vector<uint32_t>{10, 11, 12, 13, 14});
  column.repeat(repeat);
  REQUIRE(column.size() == expected.size());
  for (size_t i = 0; i < expected.size(); ++i) CHECK(std::as_const(column)[i] == expected[i]);
  CHECK(column.written() == 5);
  for (OpId op = 0; op < repeat->size(); ++op) {
    const Repeat::Place place = repeat->locate(op);
    CHECK(repeat->place(place.source, place.copy) == op);
  }
  column[4] = 99;  // now it stands for itself
  CHECK(column.written() == expected.size());
  CHECK(std::as_const(column)[2] == 12);
  CHECK(std::as_const(column)[4] == 99);
}

TEST_CASE("numbers of calls go on from copy to copy, none stays none", "[traces][program]") {
  const auto repeat = std::make_shared<const Repeat>(std::vector<Repeat::Lane>{{0, 1, 2, 1}}, 3);
  Column<uint32_t> column(std::vector<uint32_t>{0, 1, kNoCall, 2});
  column.repeat(repeat, 1);
  const std::vector<uint32_t> expected = {0, 1, kNoCall, 2, kNoCall, 3, kNoCall, 4};
  for (size_t i = 0; i < expected.size(); ++i) CHECK(std::as_const(column)[i] == expected[i]);
}

TEST_CASE("ranks that do the same hold it once", "[traces][program]") {
  Trace trace;
  for (uint32_t r = 0; r < 8; ++r) {
    RankTrace rank;
    rank.rank = r;
    rank.lanes = {{LaneKind::kHostThread, 1, 0}, {LaneKind::kStream, 7, 0}};
    for (int64_t i = 0; i < 50; ++i) {
      rank.ops.add(OpKind::kLaunch, 0, 0, 1000 * i, 500, i + 1);
      // Rank 5 is slower.
      rank.ops.add(OpKind::kKernel, 1, 0, 1000 * i + 600, r == 5 ? 350 : 300, i + 1);
    }
    rank.ops.sort();
    trace.ranks.push_back(std::move(rank));
  }
  const auto program = build_program(trace);
  REQUIRE(program);
  for (size_t r = 1; r < 8; ++r) {
    const RankProgram &first = program->ranks[0], &rank = program->ranks[r];
    CHECK(rank.kind.shares_with(first.kind));
    CHECK(rank.edges.shares_with(first.edges));
    CHECK(rank.edge_begin.shares_with(first.edge_begin));
    CHECK(rank.duration.shares_with(first.duration) == (r != 5));
  }
}

}  // namespace rehearse::column_test
