// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "traces/import/members.hpp"

namespace rehearse::import_members_test {
using namespace rehearse;
using namespace rehearse::traces;

namespace {

struct Group {
  const char* id;
  uint32_t size;
  int64_t position;
};

RankPart rank_in(RankId rank, const std::vector<Group>& groups) {
  RankPart part;
  part.trace.rank = rank;
  for (const Group& g : groups) {
    part.communicators.push_back({g.id, "", {}, ""});
    part.places.push_back({g.size, g.position});
  }
  return part;
}

using Ranks = std::vector<RankId>;

}  // namespace

TEST_CASE("members of a communicator come together from the places of all ranks",
          "[import][members]") {
  RankPart a = rank_in(5, {{"x", 2, 0}}), b = rank_in(2, {{"x", 2, 1}});
  Findings findings;
  const std::vector<RankPart*> ranks = {&a, &b};
  complete_members(ranks, 8, findings);
  CHECK(a.communicators[0].members == Ranks{5, 2});
  CHECK(b.communicators[0].members == Ranks{5, 2});
  CHECK(findings.rows().empty());
}

TEST_CASE("the members of one rank's groups follow from a layout in which they cross once",
          "[import][members]") {
  struct Case {
    RankId rank;
    uint32_t world;
    std::vector<Group> groups;
    std::vector<Ranks> members;
  };
  const std::vector<Case> cases = {
      {5, 8, {{"dp", 2, 1}, {"tp", 4, 1}}, {{1, 5}, {4, 5, 6, 7}}},
      {5, 8, {{"tp", 2, 1}, {"dp", 4, 2}}, {{4, 5}, {1, 3, 5, 7}}},
      {3, 8, {{"world", 8, 3}}, {{0, 1, 2, 3, 4, 5, 6, 7}}},
      {13, 16, {{"dp", 2, 1}, {"pp", 2, 1}, {"tp", 4, 1}}, {{9, 13}, {5, 13}, {12, 13, 14, 15}}},
  };
  for (const Case& c : cases) {
    RankPart part = rank_in(c.rank, c.groups);
    Findings findings;
    const std::vector<RankPart*> ranks = {&part};
    complete_members(ranks, c.world, findings);
    for (size_t i = 0; i < c.groups.size(); ++i) {
      INFO(c.groups[i].id << " of rank " << c.rank << " of " << c.world);
      CHECK(part.communicators[i].members == c.members[i]);
    }
    if (c.groups[0].size < c.world) CHECK(findings.count("members-assumed") == c.groups.size());
  }
}

TEST_CASE("places that contradict or say nothing are told", "[import][members]") {
  RankPart a =
      rank_in(0, {{"x", 2, 0}, {"y", 0, kUnknownPlace}, {"z", 0, kUnknownPlace}, {"all", 0, -1}});
  RankPart b = rank_in(1, {{"x", 3, 1}, {"y", 0, kUnknownPlace}});
  Findings findings;
  const std::vector<RankPart*> ranks = {&a, &b};
  complete_members(ranks, 4, findings);
  CHECK(findings.count("communicator-contradiction") == 1);
  CHECK(a.communicators[1].members == Ranks{0, 1});
  CHECK(a.communicators[2].members.empty());
  CHECK(a.communicators[3].members.empty());
  CHECK(findings.count("members-unknown") == 1);
}

TEST_CASE("a message becomes buffers by the number of members", "[import][members]") {
  RankPart part = rank_in(0, {{"x", 2, 0}});
  part.communicators[0].members = {0, 1, 2};
  for (const Collective c : {Collective::kAllGather, Collective::kReduceScatter,
                             Collective::kAllToAll, Collective::kAllReduce}) {
    Call call;
    call.collective = c;
    call.bytes_in = call.bytes_out = 100;
    part.trace.ops.add_call(0, 0, 0, 0, 0, call);
    part.message_only.push_back(true);
  }
  size_buffers(part, 8);
  const auto& calls = part.trace.ops.calls;
  CHECK((calls[0].bytes_in == 100 && calls[0].bytes_out == 300));
  CHECK((calls[1].bytes_in == 300 && calls[1].bytes_out == 100));
  CHECK((calls[2].bytes_in == 300 && calls[2].bytes_out == 300));
  CHECK((calls[3].bytes_in == 100 && calls[3].bytes_out == 100));
}

}  // namespace rehearse::import_members_test
