// SPDX-License-Identifier: Apache-2.0
// Where a rank's time went: the time from the first step's start to the last step's end is cut into
// pieces at every start and end of work on its streams; each piece belongs to the first that holds:
//   compute        a kernel, copy or memset runs
//   communication  a call moves data (all members have arrived)
//   wait           a call waits for another member
//   host           nothing runs and the next operation to start was held up by its launch
//   idle           nothing runs for another reason
#include <algorithm>
#include <array>

#include "sim/outcome/outcome.hpp"
#include "sim/replay/starts.hpp"

namespace rehearse::sim {
namespace {

using traces::kNoCall;
using traces::RankProgram;

enum Lane : int { kCompute, kTransfer, kWait, kKinds };

struct Edge {
  Nanos at;
  int kind;
  int step;  // +1 begins, -1 ends
};

// The start of a stream operation that ran.
struct Start {
  Nanos at;
  OpId op;
  Nanos lane_free;  // end of the one before it on its lane
};

// Whether its launch was what it waited for last.
bool held_by_host(const RankProgram& rank, const OpTimes& end, const Start& start) {
  Nanos host = -1, other = start.lane_free;
  for (OpId before : rank.predecessors(start.op)) {
    Nanos& latest = rank.on_gpu(rank.lane_of(before)) ? other : host;
    latest = std::max(latest, end[before]);
  }
  return host > other;
}

// `lane` is where the edges of the lane begin.
void add(std::vector<Edge>& edges, size_t lane, int kind, Nanos from, Nanos to, Nanos begin,
         Nanos finish) {
  from = std::max(from, begin);
  to = std::min(to, finish);
  if (from >= to) return;
  // What follows at once on its like goes on with it.
  if (edges.size() > lane && edges.back().at == from && edges.back().kind == kind) {
    edges.back().at = to;
    return;
  }
  edges.push_back({from, kind, 1});
  edges.push_back({to, kind, -1});
}

// What was added from `middle` on, in order of time among what stands before it. Lanes are ordered in themselves, so there is
// little to sort.
template <typename T>
void merge_in(std::vector<T>& all, size_t middle) {
  const auto earlier = [](const T& a, const T& b) { return a.at < b.at; };
  const auto from = all.begin() + static_cast<std::ptrdiff_t>(middle);
  if (!std::is_sorted(from, all.end(), earlier)) std::stable_sort(from, all.end(), earlier);
  std::inplace_merge(all.begin(), from, all.end(), earlier);
}

void fill_rank(const Evidence& evidence, size_t r, Nanos begin, Nanos finish, Nanos steps,
               pb::RankBreakdown& out) {
  const RankProgram& rank = evidence.program.ranks[r];
  const OpTimes& end = evidence.replayed.end[r];
  std::vector<Edge> edges;
  std::vector<Start> starts;
  for (traces::LaneId l = 0; l < rank.lanes.size(); ++l) {
    if (!rank.on_gpu(l)) continue;
    const size_t own = edges.size(), first = starts.size();
    Nanos free = 0;
    for (OpId op = rank.lane_begin[l]; op < rank.lane_begin[l + 1] && end[op] >= 0; ++op) {
      Nanos start = start_of(rank, end, l, op);
      if (rank.call[op] == kNoCall) {
        add(edges, own, kCompute, start, end[op], begin, finish);
      } else {
        start = evidence.replayed.arrival[r][rank.call[op]];
        const Meeting& meeting =
            evidence.replayed.meetings[evidence.replayed.meeting_of[r][rank.call[op]]];
        // Who left before the last had come did not wait for it.
        const Nanos moving =
            meeting.last_arrival > end[op] ? start : std::max(start, meeting.last_arrival);
        add(edges, own, kWait, start, moving, begin, finish);
        add(edges, own, kTransfer, moving, end[op], begin, finish);
      }
      starts.push_back({start, op, free});
      free = end[op];
    }
    merge_in(edges, own);
    merge_in(starts, first);
  }
  std::array<int, kKinds> open{};
  Nanos compute = 0, transfer = 0, wait = 0, host = 0, idle = 0, overlapped = 0;
  size_t next = 0;
  Nanos at = begin;
  const auto spend = [&](Nanos to) {
    const Nanos time = to - at;
    if (time <= 0) return;
    if (open[kCompute] > 0) {
      compute += time;
      if (open[kTransfer] > 0) overlapped += time;
    } else if (open[kTransfer] > 0) {
      transfer += time;
    } else if (open[kWait] > 0) {
      wait += time;
    } else {
      while (next < starts.size() && starts[next].at < to) ++next;
      (next < starts.size() && held_by_host(rank, end, starts[next]) ? host : idle) += time;
    }
    at = to;
  };
  for (const Edge& edge : edges) {
    spend(edge.at);
    open[static_cast<size_t>(edge.kind)] += edge.step;
  }
  spend(finish);
  out.set_rank(rank.rank);
  out.set_step((finish - begin) / steps);
  out.set_compute(compute / steps);
  out.set_communication(transfer / steps);
  out.set_wait(wait / steps);
  out.set_host(host / steps);
  out.set_overlapped(overlapped / steps);
  // The parts add up to the step to the nanosecond.
  out.set_idle(out.step() - out.compute() - out.communication() - out.wait() - out.host());
}

}  // namespace

void fill_breakdown(const Evidence& evidence, const std::vector<Nanos>& ends, pb::Outcome& out) {
  if (ends.size() < 2) return;
  for (size_t r = 0; r < evidence.program.ranks.size(); ++r) {
    fill_rank(evidence, r, ends.front(), ends.back(), static_cast<Nanos>(ends.size() - 1),
              *out.add_breakdown());
  }
}

}  // namespace rehearse::sim
