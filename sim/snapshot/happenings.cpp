// SPDX-License-Identifier: Apache-2.0
#include "sim/snapshot/happenings.hpp"

#include <algorithm>
#include <functional>
#include <tuple>

#include "sim/snapshot/snapshot.hpp"

namespace rehearse::sim {
namespace {

enum class What : uint8_t { kComes, kLeaves, kBegins, kEnds, kStops };

struct Event {
  Nanos when = 0;
  uint32_t rank = 0;  // position in Program::ranks
  What what = What::kComes;
  uint32_t index = 0;  // of the call or transfer
};

using Keep = std::function<bool(Nanos)>;

std::vector<Event> events_of(const Evidence& evidence, const Keep& keep) {
  std::vector<Event> out;
  const Replayed& replayed = evidence.replayed;
  for (uint32_t r = 0; r < evidence.program.ranks.size(); ++r) {
    const traces::RankProgram& rank = evidence.program.ranks[r];
    const auto add = [&](Nanos when, What what, size_t index) {
      if (when >= 0 && keep(when)) out.push_back({when, r, what, static_cast<uint32_t>(index)});
    };
    for (size_t c = 0; c < rank.calls.size(); ++c) {
      add(replayed.arrival[r][c], What::kComes, c);
      add(replayed.end[r][rank.call_op[c]], What::kLeaves, c);
    }
    for (size_t i = 0; i < replayed.transfer_begin[r].size(); ++i) {
      const Nanos begin = replayed.transfer_begin[r][i];
      if (begin < 0) continue;
      add(begin, What::kBegins, i);
      add(replayed.end[r][rank.transfers[i].op], What::kEnds, i);
    }
    for (const StoppedRank& stopped : evidence.schedule.stopped) {
      if (stopped.rank == rank.rank) add(stopped.at, What::kStops, 0);
    }
  }
  std::sort(out.begin(), out.end(), [](const Event& a, const Event& b) {
    return std::tie(a.when, a.rank, a.what, a.index) < std::tie(b.when, b.rank, b.what, b.index);
  });
  return out;
}

std::string describe(const Evidence& evidence, const Event& event) {
  const traces::RankProgram& rank = evidence.program.ranks[event.rank];
  switch (event.what) {
    case What::kComes:
      return "comes to " + describe_call(evidence, rank.calls[event.index]);
    case What::kLeaves:
      return "leaves " + describe_call(evidence, rank.calls[event.index]);
    case What::kBegins:
      return std::string("begins a ") + name_of(rank.transfers[event.index].way);
    case What::kEnds:
      return std::string("ends a ") + name_of(rank.transfers[event.index].way);
    case What::kStops:
      break;
  }
  return "stops";
}

}  // namespace

Passage passage(const Evidence& evidence, Nanos from, int64_t n, Nanos last) {
  Passage out{from, {}};
  if (n == 0) return out;
  const bool forward = n > 0;
  std::vector<Event> events = events_of(
      evidence, [&](Nanos when) { return forward ? when > from && when <= last : when < from; });
  if (!forward) std::reverse(events.begin(), events.end());
  int64_t moments = 0;
  for (const Event& event : events) {
    if (moments == 0 || event.when != out.to) {
      if (++moments > (forward ? n : -n)) break;
      out.to = event.when;
    }
    pb::Happening& row = out.events.emplace_back();
    row.set_time_ns(event.when);
    row.set_rank(evidence.program.ranks[event.rank].rank);
    row.set_what(describe(evidence, event));
  }
  if (!forward) std::reverse(out.events.begin(), out.events.end());
  return out;
}

}  // namespace rehearse::sim
