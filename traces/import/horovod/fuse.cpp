// SPDX-License-Identifier: Apache-2.0
#include "traces/import/horovod/fuse.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>

#include "traces/import/limits.hpp"
#include "traces/import/names.hpp"

namespace rehearse::traces::horovod {
namespace {

constexpr Nanos kTogether = 50'000;
// Operations that all ranks together may get; beyond, only rank 0 does.
constexpr uint64_t kMostOperations = 100'000'000;
constexpr uint64_t kFewRanks = 1024;
constexpr uint64_t kMostPerMarked = 16;  // ranks of the job per rank that was ever ready

bool near(Nanos a, Nanos b) { return a > b ? a - b <= kTogether : b - a <= kTogether; }

void absorb(FusedCall& into, const TensorCall& call) {
  into.end = std::max(into.end, call.end);
  into.bytes = std::min(into.bytes + std::min(call.bytes, kMostBytes), kMostBytes);
  into.sized = into.sized && (call.bytes > 0 || call.collective == Collective::kBarrier);
  ++into.tensors;
  std::map<RankId, Nanos> ready;
  for (const Ready& r : into.ready) ready[r.rank] = r.time;
  for (const Ready& r : call.ready) {
    const auto [at, added] = ready.emplace(r.rank, r.time);
    if (!added) at->second = std::max(at->second, r.time);
  }
  into.ready.clear();
  for (const auto& [rank, time] : ready) into.ready.push_back({rank, time});
}

Call call_of(const FusedCall& fused, Bytes ranks) {
  Call call;
  call.collective = fused.collective;
  call.dtype = fused.dtype;
  if (is_reducing(fused.collective)) call.reduction = Reduction::kSum;
  call.bytes_in = call.bytes_out = fused.bytes;
  if (fused.collective == Collective::kAllGather) call.bytes_in = fused.bytes / ranks;
  if (fused.collective == Collective::kReduceScatter) call.bytes_in = gathered(fused.bytes, ranks);
  return call;
}

void add_calls(const std::vector<FusedCall>& calls, Bytes ranks, Strings& strings, RankPart& part) {
  RankTrace& rank = part.trace;
  part.communicators.push_back({"horovod", "all ranks", {}, ""});
  const auto lane = static_cast<LaneId>(rank.lanes.size());
  rank.lanes.push_back({LaneKind::kStream, 0, strings.intern("collectives")});
  Nanos before = INT64_MIN;  // end of the previous one
  for (const FusedCall& c : calls) {
    // Ready earlier than the previous collective ended: it waits for its turn, not for others.
    Nanos start = c.start;
    const auto mine = std::lower_bound(c.ready.begin(), c.ready.end(), rank.rank,
                                       [](const Ready& r, RankId id) { return r.rank < id; });
    if (mine != c.ready.end() && mine->rank == rank.rank) start = std::min(mine->time, c.start);
    start = std::max(start, std::min(before, c.start));
    before = c.end;
    rank.ops.add_call(lane, strings.intern(c.name), start, c.end - start, 0, call_of(c, ranks));
    part.sized.push_back(c.sized);
  }
}

void add_phases(Timeline& timeline, Strings& strings, RankTrace& rank) {
  std::vector<int64_t> lane_of(timeline.tensors().size(), -1);
  for (const Phase& p : timeline.phases()) {
    if (lane_of[p.tensor] < 0) {
      lane_of[p.tensor] = static_cast<int64_t>(rank.lanes.size());
      rank.lanes.push_back({LaneKind::kHostThread, int64_t{p.tensor} + 1,
                            strings.intern(timeline.tensors()[p.tensor])});
    }
    rank.ops.add(OpKind::kAnnotation, static_cast<LaneId>(lane_of[p.tensor]),
                 strings.intern(p.name), p.start, p.end - p.start);
  }
  timeline.phases().clear();
  if (timeline.cycles().empty()) return;
  const auto lane = static_cast<LaneId>(rank.lanes.size());
  rank.lanes.push_back({LaneKind::kHostThread, -1, strings.intern("cycles")});
  const uint32_t name = strings.intern("CYCLE_START");
  for (const Nanos at : timeline.cycles()) rank.ops.add(OpKind::kAnnotation, lane, name, at, 0);
}

// What to add to all times; 0 when that would leave the times that a trace can hold.
Nanos usable_epoch(Timeline& timeline, const std::string& file, Findings& findings) {
  Nanos latest = 0;
  for (const Phase& p : timeline.phases()) latest = std::max(latest, p.end);
  for (const Timeline::Tick& t : timeline.ticks()) latest = std::max(latest, t.ready.time);
  for (const Nanos at : timeline.cycles()) latest = std::max(latest, at);
  if (timeline.epoch() <= (Nanos{1} << 61) - latest) return timeline.epoch();
  findings.add("bad-base-time", Severity::kWarning, file,
               "the start of the recording makes no sense; times are taken without it");
  return 0;
}

using Ticks = std::map<RankId, std::vector<const Timeline::Tick*>>;

// Nearly every rank is marked at some time: a number far beyond all others is damage, not a job that has as many.
void leave_out_strays(Ticks& ticks, const std::string& file, Findings& findings) {
  while (!ticks.empty()) {
    const auto far = std::prev(ticks.end());
    const uint64_t ranks = uint64_t{far->first} + 1;
    if (ranks <= std::max(kFewRanks, kMostPerMarked * ticks.size())) return;
    findings.add("rank-beyond-others", Severity::kDataLoss,
                 fmt::format("{}: rank {}", file, far->first),
                 "marks of ranks far beyond all others are left out; the file may be damaged",
                 far->second.size());
    ticks.erase(far);
  }
}

}  // namespace

std::vector<FusedCall> fuse(std::vector<TensorCall> calls) {
  std::stable_sort(calls.begin(), calls.end(), [](const TensorCall& a, const TensorCall& b) {
    return a.start != b.start ? a.start < b.start : a.end < b.end;
  });
  std::vector<FusedCall> out;
  const TensorCall* previous = nullptr;
  for (const TensorCall& call : calls) {
    const bool together = previous != nullptr && out.back().name == call.name &&
                          out.back().collective == call.collective &&
                          call.collective != Collective::kBarrier &&
                          near(previous->start, call.start) && near(previous->end, call.end);
    if (!together) {
      out.push_back({call.collective, call.name, call.start, call.end, 0, call.dtype, true, 0, {}});
    }
    absorb(out.back(), call);
    previous = &call;
  }
  return out;
}

std::vector<RankPart> ranks_of(Timeline& timeline, const std::string& file, ReadContext& context) {
  const std::vector<FusedCall> calls = fuse(std::move(timeline.calls()));
  Ticks ticks;
  for (const Timeline::Tick& t : timeline.ticks()) ticks[t.ready.rank].push_back(&t);
  leave_out_strays(ticks, file, context.findings);
  const RankId last = ticks.empty() ? 0 : ticks.rbegin()->first;
  const uint64_t ranks = uint64_t{last} + 1;
  const bool all = !calls.empty() && calls.size() * ranks <= kMostOperations;
  if (!calls.empty() && !all) {
    context.findings.add("only-rank-0", Severity::kWarning, file,
                         "too many ranks and collectives to write all of them; rank 0 has them");
  }
  const auto without = static_cast<uint64_t>(std::count_if(
      calls.begin(), calls.end(), [](const FusedCall& c) { return c.ready.empty(); }));
  if (without > 0) {
    context.findings.add("readiness-unknown", Severity::kInfo, file,
                         "no rank is marked ready (the response cache answers without asking); all "
                         "ranks are taken to come when the collective starts",
                         without);
  }
  const auto partly =
      static_cast<uint64_t>(std::count_if(calls.begin(), calls.end(), [&](const FusedCall& c) {
        return !c.ready.empty() && c.ready.size() < ranks;
      }));
  if (partly > 0) {
    context.findings.add("ranks-not-marked", Severity::kWarning, file,
                         "only some ranks are marked ready for these: all are taken to be in them, "
                         "for a timeline does not tell a process set from ranks that had joined",
                         partly);
  }
  if (!calls.empty() && last > 0) {
    context.findings.add(
        "times-of-rank-0", Severity::kInfo, file,
        "rank 0 writes the timeline: starts of other ranks are when they said they "
        "were ready, ends are those of rank 0");
  }
  const Nanos epoch = usable_epoch(timeline, file, context.findings);
  std::vector<RankPart> out;
  for (RankId r = 0; r <= last; ++r) {
    const auto mine = ticks.find(r);
    if (r != 0 && !all && mine == ticks.end()) continue;
    RankPart part;
    part.trace.rank = r;
    if (all || (r == 0 && !calls.empty())) {
      add_calls(calls, static_cast<Bytes>(ranks), context.strings, part);
    }
    if (r == 0) add_phases(timeline, context.strings, part.trace);
    if (mine != ticks.end()) {
      const auto lane = static_cast<LaneId>(part.trace.lanes.size());
      part.trace.lanes.push_back(
          {LaneKind::kHostThread, 0, context.strings.intern("ready tensors")});
      for (const Timeline::Tick* t : mine->second) {
        part.trace.ops.add(OpKind::kAnnotation, lane,
                           context.strings.intern(timeline.tensors()[t->tensor]), t->ready.time, 0);
      }
    }
    if (part.trace.ops.size() == 0) continue;
    for (Nanos& start : part.trace.ops.start) start += epoch;
    part.trace.ops.sort();
    out.push_back(std::move(part));
  }
  return out;
}

}  // namespace rehearse::traces::horovod
