// SPDX-License-Identifier: Apache-2.0
#include "sim/outcome/stuck.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/text.hpp"

namespace rehearse::sim {
namespace {

using traces::RankId;
using Blamed = std::map<RankId, std::string>;

// Members that are in one call and would come to another after it.
std::vector<uint32_t> held(const Stuck& in, const Stuck& next) {
  std::vector<uint32_t> out;
  std::set_intersection(in.present.begin(), in.present.end(), next.coming.begin(),
                        next.coming.end(), std::back_inserter(out));
  return out;
}

// Pairs of calls, the first to arrive at first, that hold each other: somebody is in each of them whom the other wants.
std::set<std::pair<size_t, size_t>> crossed(const std::vector<Stuck>& all, size_t ranks) {
  std::vector<std::vector<size_t>> in(ranks);
  for (size_t i = 0; i < all.size(); ++i) {
    for (const uint32_t r : all[i].present) in[r].push_back(i);
  }
  std::set<std::pair<size_t, size_t>> before, out;
  for (size_t next = 0; next < all.size(); ++next) {
    for (const uint32_t r : all[next].coming) {
      for (const size_t now : in[r]) before.emplace(now, next);
    }
  }
  for (const auto& [now, next] : before) {
    if (now < next && before.contains({next, now})) out.emplace(now, next);
  }
  return out;
}

Blamed blame_order(const Evidence& evidence, const std::vector<Stuck>& all) {
  Blamed blamed;
  for (const auto& [x, y] : crossed(all, evidence.program.ranks.size())) {
    const std::vector<uint32_t> sides[] = {held(all[x], all[y]), held(all[y], all[x])};
    const std::string calls[] = {
        describe_meeting(evidence, evidence.replayed.meetings[all[x].meeting]),
        describe_meeting(evidence, evidence.replayed.meetings[all[y].meeting])};
    for (const size_t side : {0, 1}) {
      const size_t others = sides[1 - side].size();
      if (sides[side].size() > others) continue;
      for (const uint32_t r : sides[side]) {
        blamed.emplace(evidence.program.ranks[r].rank,
                       fmt::format("comes to {} before {}; {} the other way round", calls[side],
                                   calls[1 - side], counted_ranks(others)));
      }
    }
  }
  return blamed;
}

Blamed blame_idle(const Evidence& evidence, const std::vector<Stuck>& all,
                  const std::vector<std::set<uint32_t>>& waits_for) {
  Blamed blamed;
  for (const Stuck& stuck : all) {
    for (const uint32_t r : stuck.coming) {
      if (!waits_for[r].empty()) continue;
      blamed.emplace(
          evidence.program.ranks[r].rank,
          fmt::format("is in no call, its own operations hold each other up; {} waits for it",
                      describe_meeting(evidence, evidence.replayed.meetings[stuck.meeting])));
    }
  }
  return blamed;
}

// Positions on a cycle of the waits-for graph.
std::vector<uint32_t> cycle(const std::vector<std::set<uint32_t>>& waits_for) {
  std::vector<int> state(waits_for.size(), 0);
  std::vector<uint32_t> path;
  for (uint32_t begin = 0; begin < waits_for.size(); ++begin) {
    uint32_t at = begin;
    path.clear();
    while (state[at] == 0 && !waits_for[at].empty()) {
      state[at] = 1;
      path.push_back(at);
      at = *waits_for[at].begin();
    }
    const auto loop = std::find(path.begin(), path.end(), at);
    if (loop != path.end()) {
      std::vector<uint32_t> found(loop, path.end());
      std::sort(found.begin(), found.end());
      return found;
    }
    for (uint32_t r : path) state[r] = 2;
  }
  return {};
}

}  // namespace

std::vector<Stuck> find_stuck(const Evidence& evidence) {
  const Replayed& replayed = evidence.replayed;
  std::map<uint32_t, Stuck> stuck;
  for (uint32_t id = 0; id < replayed.meetings.size(); ++id) {
    const Meeting& meeting = replayed.meetings[id];
    if (meeting.arrived > 0 && meeting.end < 0) stuck[id].meeting = id;
  }
  std::map<uint32_t, std::set<uint32_t>> known;
  for (uint32_t r = 0; r < evidence.program.ranks.size(); ++r) {
    for (size_t c = 0; c < replayed.meeting_of[r].size(); ++c) {
      const auto at = stuck.find(replayed.meeting_of[r][c]);
      if (at == stuck.end()) continue;
      known[at->first].insert(r);
      if (replayed.arrival[r][c] < 0) {
        at->second.coming.push_back(r);
      } else if (replayed.end[r][evidence.program.ranks[r].call_op[c]] < 0) {
        at->second.present.push_back(r);
        at->second.calls.emplace(r, evidence.program.ranks[r].calls[c]);
      }
    }
  }
  std::vector<Stuck> out;
  for (auto& [id, call] : stuck) {
    if (call.present.empty()) continue;  // those who came have done their part and left
    const Meeting& meeting = replayed.meetings[id];
    const auto& members = evidence.program.communicators[meeting.communicator].members;
    for (size_t m = 0; m < members.size(); ++m) {
      const int r = evidence.program.find(members[m]);
      if (r < 0 || known[id].count(static_cast<uint32_t>(r)) > 0) continue;
      const bool pair = traces::is_point_to_point(meeting.call.collective);
      if (pair && static_cast<int32_t>(m) != meeting.call.peer) continue;
      call.never.push_back(static_cast<uint32_t>(r));
    }
    out.push_back(std::move(call));
  }
  std::sort(out.begin(), out.end(), [&](const Stuck& a, const Stuck& b) {
    const Meeting& x = replayed.meetings[a.meeting];
    const Meeting& y = replayed.meetings[b.meeting];
    return x.first_arrival != y.first_arrival ? x.first_arrival < y.first_arrival
                                              : a.meeting < b.meeting;
  });
  return out;
}

std::string describe_meeting(const Evidence& evidence, const Meeting& meeting) {
  return fmt::format("{} {} on {}", name_of(meeting.call.collective), meeting.sequence,
                     evidence.program.communicators[meeting.communicator].id);
}

std::string counted_ranks(size_t n) { return n == 1 ? "1 rank" : fmt::format("{} ranks", n); }

Blamed blame_circle(const Evidence& evidence, const std::vector<Stuck>& all,
                    const std::vector<std::set<uint32_t>>& waits_for) {
  Blamed blamed = blame_order(evidence, all);
  if (blamed.empty()) blamed = blame_idle(evidence, all, waits_for);
  if (!blamed.empty()) return blamed;
  for (const uint32_t r : cycle(waits_for)) {
    blamed.emplace(evidence.program.ranks[r].rank, "waits in a cycle of ranks");
  }
  return blamed;
}

}  // namespace rehearse::sim
