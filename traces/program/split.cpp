// SPDX-License-Identifier: Apache-2.0
#include "traces/program/split.hpp"

#include <algorithm>
#include <map>

namespace rehearse::traces {
namespace {

using Key = std::pair<uint32_t, int64_t>;  // communicator, sequence

struct Span {
  Nanos start = 0, end = 0;
};

// The synchronising calls of a rank; of calls that repeat a number only the first.
std::map<Key, Span> spans_of(const RankTrace& rank) {
  std::map<Key, Span> spans;
  for (size_t op = 0; op < rank.ops.size(); ++op) {
    const Call* call = rank.ops.call(op);
    if (call == nullptr || !synchronises(call->collective)) continue;
    const Nanos start = rank.ops.start[op];
    spans.emplace(Key{call->communicator, call->sequence},
                  Span{start, start + rank.ops.duration[op]});
  }
  return spans;
}

}  // namespace

bool synchronises(Collective c) {
  return c == Collective::kAllReduce || c == Collective::kAllGather ||
         c == Collective::kReduceScatter || c == Collective::kAllToAll || c == Collective::kBarrier;
}

void split_calls(const Trace& trace, Program& program) {
  struct Meeting {
    size_t ranks = 0;
    Nanos last_start = 0;
  };
  std::map<Key, Meeting> meetings;
  for (const RankTrace& rank : trace.ranks) {
    for (const auto& [key, span] : spans_of(rank)) {
      Meeting& meeting = meetings[key];
      meeting.last_start =
          meeting.ranks == 0 ? span.start : std::max(meeting.last_start, span.start);
      ++meeting.ranks;
    }
  }
  for (size_t r = 0; r < trace.ranks.size(); ++r) {
    const std::map<Key, Span> spans = spans_of(trace.ranks[r]);
    RankProgram& rank = program.ranks[r];
    rank.call_split.assign(rank.calls.size(), {});
    for (size_t c = 0; c < rank.calls.size(); ++c) {
      const Key key{rank.calls[c].communicator, rank.calls[c].sequence};
      const auto span = spans.find(key);
      if (span == spans.end() || !synchronises(rank.calls[c].collective)) continue;
      const Meeting& meeting = meetings.at(key);
      if (meeting.ranks < trace.communicators[key.first].members.size()) continue;
      const auto [start, end] = span->second;
      const Nanos wait = std::clamp<Nanos>(meeting.last_start - start, 0, end - start);
      rank.call_split[c] = {wait, end - start - wait};
    }
  }
}

}  // namespace rehearse::traces
