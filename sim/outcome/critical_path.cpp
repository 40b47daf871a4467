// SPDX-License-Identifier: Apache-2.0
// Walked backwards from the operation that ended last. Before an operation comes whatever released
// it: its lane, a predecessor, or, for a call, the member that arrived last. The time between is
// blamed on the operation; the transfer of a call is blamed on the call and on the link that bounds
// it.
#include <algorithm>
#include <map>
#include <string>

#include "sim/outcome/outcome.hpp"

namespace rehearse::sim {
namespace {

using traces::kNoCall;
using traces::RankProgram;

constexpr int kShown = 12;  // rows per table

bool same_group(const RankProgram& rank, OpId a, OpId b) {
  if (rank.call[a] == kNoCall || rank.call[b] == kNoCall) return false;
  const uint64_t group = rank.calls[rank.call[b]].group;
  return group != 0 && rank.calls[rank.call[a]].group == group;
}

void fill(const std::map<std::string, Nanos>& blame, Nanos length,
          google::protobuf::RepeatedPtrField<pb::Blame>& out) {
  std::vector<std::pair<Nanos, std::string>> rows;
  for (const auto& [name, time] : blame) rows.emplace_back(time, name);
  std::sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first > b.first : a.second < b.second;
  });
  if (rows.size() > kShown) rows.resize(kShown);
  for (const auto& [time, name] : rows) {
    pb::Blame& row = *out.Add();
    row.set_name(name);
    row.set_ns(time);
    row.set_share(length > 0 ? static_cast<double>(time) / static_cast<double>(length) : 0);
  }
}

}  // namespace

void fill_critical_path(const Evidence& evidence, pb::Outcome& out) {
  const Replayed& replayed = evidence.replayed;
  size_t r = SIZE_MAX;
  OpId op = 0;
  Nanos latest = -1;
  for (size_t i = 0; i < replayed.end.size(); ++i) {
    for (OpId o = 0; o < replayed.end[i].size(); ++o) {
      if (replayed.end[i][o] > latest) {
        latest = replayed.end[i][o];
        r = i;
        op = o;
      }
    }
  }
  if (r == SIZE_MAX) return;
  std::map<std::string, Nanos> operations, ranks, links;
  const auto blame = [&](const std::string& name, Nanos time) {
    operations[name] += time;
    ranks["rank " + std::to_string(evidence.program.ranks[r].rank)] += time;
  };
  Nanos at = latest;
  while (true) {
    const RankProgram* rank = &evidence.program.ranks[r];
    if (rank->call[op] != kNoCall) {
      const uint32_t id = replayed.meeting_of[r][rank->call[op]];
      const Meeting& meeting = replayed.meetings[id];
      // Who left before the last had come was held up by itself.
      const bool ahead = meeting.last_arrival > at;
      const Nanos since = ahead ? replayed.arrival[r][rank->call[op]] : meeting.last_arrival;
      const Nanos moving = at - since;
      const uint32_t shape = replayed.shape_of[id];
      operations[std::string(name_of(meeting.call.collective)) + " " +
                 evidence.program.communicators[meeting.communicator].description] += moving;
      if (const LinkId link = replayed.shapes[shape].bottleneck; link != platforms::kNoLink) {
        links[evidence.links[link].name] += moving;
      }
      at = since;
      if (!ahead) {
        r = meeting.last_arriver;
        op = meeting.last_op;
        rank = &evidence.program.ranks[r];
      }
    }
    // What released this operation?
    const auto lane = std::upper_bound(rank->lane_begin.begin(), rank->lane_begin.end(), op) -
                      rank->lane_begin.begin() - 1;
    // Calls of one group were entered together: what released the first released them all.
    while (op > rank->lane_begin[static_cast<size_t>(lane)] && same_group(*rank, op - 1, op)) --op;
    OpId before = UINT32_MAX;
    Nanos released = 0;
    if (op > rank->lane_begin[static_cast<size_t>(lane)]) {
      before = op - 1;
      released = replayed.end[r][before];
    }
    for (OpId candidate : rank->predecessors(op)) {
      if (replayed.end[r][candidate] > released || before == UINT32_MAX) {
        before = candidate;
        released = replayed.end[r][candidate];
      }
    }
    const bool host = !rank->on_gpu(static_cast<traces::LaneId>(lane));
    blame(host ? "host" : evidence.names.at(rank->name[op]), at - released);
    if (before == UINT32_MAX) break;
    op = before;
    at = released;
  }
  pb::CriticalPath& path = *out.mutable_critical_path();
  path.set_length_ns(latest);
  fill(operations, latest, *path.mutable_operations());
  fill(ranks, latest, *path.mutable_ranks());
  fill(links, latest, *path.mutable_links());
}

}  // namespace rehearse::sim
