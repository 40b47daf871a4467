// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "sim/host/threads.hpp"

namespace rehearse::host_threads_test {

// Eight processes on a node of two cores.
pb::Scenario crowded() {
  pb::Scenario out;
  out.mutable_platform()->add_nodes()->add_numa()->set_cores(2);
  for (uint32_t rank = 0; rank < 8; ++rank) {
    out.mutable_launch()->add_ranks()->set_rank(rank);
  }
  return out;
}

TEST_CASE("threads that nobody tells of are those of the recording", "[sim][host]") {
  CHECK(sim::turns_on_cores(crowded()).empty());
}

TEST_CASE("threads that one process is told take turns with all of its node", "[sim][host]") {
  pb::Scenario document = crowded();
  (*document.mutable_launch()->mutable_ranks(3)->mutable_env())["OMP_NUM_THREADS"] = "5,2";
  const auto turns = sim::turns_on_cores(document);
  REQUIRE(turns.size() == 8);
  CHECK(turns.at(0) == Approx(12.0 / 4));  // of two hardware threads a core
  CHECK(turns.at(3) == turns.at(0));
}

TEST_CASE("a process takes turns on the cores it is bound to", "[sim][host]") {
  pb::Scenario document = crowded();
  document.mutable_platform()->mutable_nodes(0)->mutable_numa(0)->set_cores(64);
  pb::RankLaunch& rank = *document.mutable_launch()->mutable_ranks(3);
  (*rank.mutable_env())["OMP_NUM_THREADS"] = "8";
  rank.set_cpus("0-1");
  const auto turns = sim::turns_on_cores(document);
  REQUIRE(turns.size() == 1);
  CHECK(turns.at(3) == Approx(2.0));
}

}  // namespace rehearse::host_threads_test
