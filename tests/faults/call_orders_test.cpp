// SPDX-License-Identifier: Apache-2.0
// Who issued calls of two groups in another order than its peers.
#include "faults/diagnose/call_orders.hpp"

#include <catch2/catch.hpp>
#include <string>

namespace rehearse::call_orders_test {
using namespace rehearse;
using namespace rehearse::faults;

namespace {

// Four ranks; each in "dp" with all and in "tp" with its neighbour. A word per rank: d and t in the order of its calls, s for
// a send.
pb::Outcome issued(const std::vector<std::string>& ranks) {
  pb::Outcome out;
  for (uint32_t rank = 0; rank < ranks.size(); ++rank) {
    pb::FlightRecorder& recorder = *out.add_flight_records();
    recorder.set_rank(rank);
    pb::FlightGroup& dp = *recorder.add_groups();
    dp.set_name("dp/0-3");
    dp.set_description("dp");
    for (uint32_t member = 0; member < ranks.size(); ++member) dp.add_ranks(member);
    pb::FlightGroup& tp = *recorder.add_groups();
    tp.set_name("tp/" + std::to_string(rank / 2));
    tp.set_description("tp");
    for (const uint32_t member : {rank / 2 * 2, rank / 2 * 2 + 1}) tp.add_ranks(member);
    int64_t of_dp = 0, of_tp = 0;
    for (const char kind : ranks[rank]) {
      pb::FlightEntry& entry = *recorder.add_entries();
      entry.set_record_id(recorder.entries_size() - 1);
      entry.set_group_name(kind == 't' ? tp.name() : dp.name());
      entry.set_p2p(kind == 's');
      if (kind != 's') entry.set_collective_seq(kind == 't' ? ++of_tp : ++of_dp);
    }
    recorder.set_entries_total(recorder.entries_size());
  }
  return out;
}

}  // namespace

TEST_CASE("the rank with another order of two groups is named, with the pair",
          "[faults][deviations]") {
  const auto found = only_other_order(issued({"dtd", "dtd", "ddt", "dtd"}));
  REQUIRE(found);
  CHECK(found->rank == 2);
  // d and t, then t and d: the second of two pairs was exchanged.
  CHECK(found->pair == 1);
}

TEST_CASE("pairs are counted as they should be, without sends", "[faults][deviations]") {
  const auto found = only_other_order(issued({"dtsdt", "dtstd", "dtsdt", "dtsdt"}));
  REQUIRE(found);
  CHECK(found->rank == 1);
  CHECK(found->pair == 1);
}

TEST_CASE("the same order everywhere names nobody, and neither do two camps",
          "[faults][deviations]") {
  CHECK_FALSE(only_other_order(issued({"dtd", "dtd", "dtd", "dtd"})));
  CHECK_FALSE(only_other_order(issued({"dt", "td", "dt", "td"})));
  CHECK(call_orders(pb::Outcome()).empty());
}

TEST_CASE("a dump that does not go back to the first call tells who, not where",
          "[faults][deviations]") {
  pb::Outcome run = issued({"dtd", "dtd", "ddt", "dtd"});
  run.mutable_flight_records(2)->set_entries_total(100);
  const auto found = only_other_order(run);
  REQUIRE(found);
  CHECK_FALSE(found->pair);
}

}  // namespace rehearse::call_orders_test
