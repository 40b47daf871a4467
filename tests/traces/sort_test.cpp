// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <catch2/catch.hpp>

#include "base/random.hpp"
#include "traces/model/trace.hpp"

namespace rehearse::sort_test {
using namespace rehearse;
using namespace rehearse::traces;

namespace {

// The order (start, lane, recorded order); the correlation says where an operation was recorded.
bool in_order(const Operations& ops) {
  for (size_t i = 1; i < ops.size(); ++i) {
    const auto key = [&](size_t k) {
      return std::make_tuple(ops.start[k], ops.lane[k], ops.correlation[k]);
    };
    if (!(key(i - 1) < key(i))) return false;
  }
  return true;
}

bool rows_whole(const Operations& ops) {
  for (size_t i = 0; i < ops.size(); ++i) {
    if (ops.duration[i] != 3 * ops.correlation[i] ||
        ops.name[i] != uint32_t(ops.correlation[i] % 97)) {
      return false;
    }
  }
  return true;
}

void add(Operations& ops, LaneId lane, Nanos start) {
  const auto id = static_cast<int64_t>(ops.size());
  ops.add(OpKind::kKernel, lane, uint32_t(id % 97), start, 3 * id, id);
}

}  // namespace

TEST_CASE("operations are sorted by start, lane and order of recording", "[traces][model]") {
  Random random(5, "sort");
  Operations ops;
  for (int i = 0; i < 10'000; ++i)
    add(ops, static_cast<LaneId>(random.below(4)), Nanos(random.below(2000)));
  ops.sort();
  CHECK(in_order(ops));
  CHECK(rows_whole(ops));
}

TEST_CASE("lists that were recorded one behind the other are merged", "[traces][model]") {
  Random random(6, "lists");
  for (const LaneId lists : {1u, 2u, 3u, 41u}) {
    Operations ops;
    for (LaneId lane = 0; lane < lists; ++lane) {
      Nanos at = 0;
      for (int i = 0; i < 500; ++i) add(ops, lane % 7, at += Nanos(random.below(3)));
    }
    ops.sort();
    CHECK(in_order(ops));
    CHECK(rows_whole(ops));
  }
}

TEST_CASE("more operations than one stretch are merged whatever their order", "[traces][model]") {
  constexpr size_t kMany = 2'700'000;
  SECTION("host first, then all streams") {
    Operations ops;
    for (const LaneId lane : {0u, 1u}) {
      for (size_t i = 0; i < kMany / 2; ++i) add(ops, lane, Nanos(i * 10));
    }
    ops.sort();
    CHECK(in_order(ops));
    CHECK(rows_whole(ops));
  }
  SECTION("backwards") {
    Operations ops;
    for (size_t i = 0; i < kMany; ++i) add(ops, 0, Nanos(kMany - i / 3));
    ops.sort();
    CHECK(in_order(ops));
    CHECK(rows_whole(ops));
  }
}

TEST_CASE("dependencies follow their operations", "[traces][model]") {
  Operations ops;
  for (const Nanos start : {30, 10, 20}) add(ops, 0, start);
  ops.dependencies = {{0, 1}, {2, 1}};
  ops.sort();
  CHECK(in_order(ops));
  CHECK(ops.correlation == std::vector<int64_t>{1, 2, 0});
  CHECK(ops.dependencies == std::vector<Dependency>{{1, 0}, {2, 0}});
}

}  // namespace rehearse::sort_test
