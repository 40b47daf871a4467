// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <numeric>
#include <unordered_map>

#include "traces/program/overlap.hpp"
#include "traces/program/program.hpp"

namespace rehearse::traces {
namespace {

constexpr uint32_t kNoOp = UINT32_MAX;
// Longer gaps and durations are nonsense of a damaged clock; they are cut here so that sums hold.
constexpr Nanos kLongest = 1'000'000'000'000'000'000;  // 31 years

// Does a recorded operation of this kind become one of the program?
bool is_work(OpKind kind) {
  return kind != OpKind::kHost && kind != OpKind::kAnnotation && kind != OpKind::kMemory;
}

// Turns one rank's recorded operations into lanes with edges. Works in two passes: lay the
// operations out lane by lane, then walk the host calls in time order and remember what is enqueued
// where.
class RankBuilder {
 public:
  RankBuilder(const RankTrace& rank, uint32_t steps, Findings& findings)
      : rank_(rank), ops_(rank.ops), steps_(steps), findings_(findings) {}

  RankProgram build() {
    find_named();
    lay_out();
    connect();
    finish_edges();
    measure_gaps();
    place_steps();
    out_.overlap = recorded_overlap(rank_, out_, source_);
    return std::move(out_);
  }

 private:
  [[nodiscard]] Nanos start(OpId op) const { return ops_.start[source_[op]]; }
  [[nodiscard]] Nanos end(OpId op) const { return start(op) + ops_.duration[source_[op]]; }
  [[nodiscard]] LaneId lane(OpId op) const { return ops_.lane[source_[op]]; }

  // Host operations that a recorded dependency names take part in the order of things.
  void find_named() {
    if (ops_.dependencies.empty()) return;
    named_.assign(ops_.size(), false);
    for (const Dependency& d : ops_.dependencies) named_[d.op] = named_[d.on] = true;
  }

  [[nodiscard]] bool takes_part(size_t i) const {
    return is_work(ops_.kind[i]) || (!named_.empty() && named_[i]);
  }

  void lay_out() {
    const size_t lanes = rank_.lanes.size();
    std::vector<OpId> count(lanes + 1, 0);
    for (size_t i = 0; i < ops_.size(); ++i) {
      if (takes_part(i)) ++count[ops_.lane[i] + 1u];
    }
    std::partial_sum(count.begin(), count.end(), count.begin());
    out_.rank = rank_.rank;
    out_.lanes = rank_.lanes;
    out_.lane_begin = count;
    const size_t n = count.back();
    source_.resize(n);
    position_.assign(ops_.size(), kNoOp);
    std::vector<OpId> next(count.begin(), count.end() - 1);
    for (size_t i = 0; i < ops_.size(); ++i) {
      if (!takes_part(i)) continue;
      const OpId op = next[ops_.lane[i]]++;
      source_[op] = static_cast<uint32_t>(i);
      position_[i] = op;
    }
    out_.kind.resize(n);
    out_.name.resize(n);
    out_.gap.assign(n, 0);
    out_.duration.resize(n);
    out_.call.assign(n, kNoCall);
    for (OpId op = 0; op < n; ++op) {
      out_.kind[op] = ops_.kind[source_[op]];
      out_.name[op] = ops_.name[source_[op]];
      out_.duration[op] = std::clamp<Nanos>(ops_.duration[source_[op]], 0, kLongest);
    }
  }

  void edge(OpId from, OpId to) {
    if (from != kNoOp && to != kNoOp && from != to) pairs_.emplace_back(to, from);
  }

  // The stream operations by correlation id, in recorded order.
  void index_correlations() {
    for (size_t i = 0; i < ops_.size(); ++i) {
      if (position_[i] == kNoOp || ops_.correlation[i] == 0) continue;
      if (out_.on_gpu(ops_.lane[i])) launched_.emplace_back(ops_.correlation[i], position_[i]);
    }
    std::stable_sort(launched_.begin(), launched_.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
  }

  void enqueue(OpId launch, OpId work) {
    edge(launch, work);
    const LaneId stream = lane(work);
    for (OpId waited : pending_waits_[stream]) edge(waited, work);
    pending_waits_[stream].clear();
    last_enqueued_[stream] = work;
    add_call(work);
  }

  void add_call(OpId op) {
    const Call* call = ops_.call(source_[op]);
    if (call == nullptr || out_.call[op] != kNoCall) return;
    out_.call[op] = static_cast<uint32_t>(out_.calls.size());
    out_.calls.push_back(*call);
    out_.call_op.push_back(op);
  }

  void connect() {
    index_correlations();
    pending_waits_.resize(rank_.lanes.size());
    last_enqueued_.assign(rank_.lanes.size(), kNoOp);
    std::vector<bool> was_launched(source_.size(), false);
    OpId latest = kNoOp;  // host call with the latest end so far
    for (size_t i = 0; i < ops_.size(); ++i) {
      const OpId op = position_[i];
      if (op == kNoOp || out_.on_gpu(ops_.lane[i])) continue;
      hand_over(op, latest);
      if (latest == kNoOp || end(op) >= end(latest)) latest = op;
      if (const Sync* sync = ops_.sync(i)) synchronise(op, *sync);
      if (ops_.kind[i] == OpKind::kCall) add_call(op);
      if (ops_.kind[i] == OpKind::kSync || ops_.correlation[i] == 0) continue;
      const auto by_id = [](const auto& a, const auto& b) { return a.first < b.first; };
      const auto [first, last] =
          std::equal_range(launched_.begin(), launched_.end(),
                           std::pair<int64_t, OpId>{ops_.correlation[i], 0}, by_id);
      for (auto it = first; it != last; ++it) {
        enqueue(op, it->second);
        was_launched[it->second] = true;
      }
    }
    for (OpId op = 0; op < source_.size(); ++op) {
      if (!out_.on_gpu(lane(op)) || was_launched[op]) continue;
      add_call(op);
      findings_.add("work-without-launch", Severity::kInfo,
                    "rank " + std::to_string(rank_.rank) + ", " + name_of(out_.kind[op]) + " at " +
                        std::to_string(start(op)) + " ns",
                    "the host call that launched it was not recorded; it keeps its recorded gap");
    }
  }

  // A host call that starts after its own thread was idle, while another thread was the last to
  // end: the other thread handed over.
  void hand_over(OpId op, OpId latest) {
    if (latest == kNoOp || lane(latest) == lane(op)) return;
    const bool first = op == out_.lane_begin[lane(op)];
    if (end(latest) > start(op) || (!first && end(op - 1) > end(latest))) return;
    edge(latest, op);
    ++out_.inferred_edges;
  }

  void synchronise(OpId op, const Sync& sync) {
    const auto stream = static_cast<size_t>(sync.stream_lane);
    const bool known = sync.stream_lane >= 0 && stream < rank_.lanes.size();
    const auto event = events_.find(sync.event);
    switch (sync.sync) {
      case SyncKind::kRecord:
        if (known && sync.event != 0) events_[sync.event] = last_enqueued_[stream];
        break;
      case SyncKind::kWaitEvent:
        if (known && event != events_.end()) {
          if (event->second != kNoOp) pending_waits_[stream].push_back(event->second);
        } else {
          findings_.add(
              "wait-without-event", Severity::kWarning,
              "rank " + std::to_string(rank_.rank) + ", at " + std::to_string(start(op)) + " ns",
              "the trace does not say which event was waited for; record with "
              "synchronisation events switched on");
        }
        break;
      case SyncKind::kEvent:
        if (event != events_.end()) edge(event->second, op);
        break;
      case SyncKind::kStream:
        if (known) edge(last_enqueued_[stream], op);
        break;
      case SyncKind::kDevice:
        for (OpId last : last_enqueued_) edge(last, op);
        break;
    }
  }

  void finish_edges() {
    for (const Dependency& d : ops_.dependencies) edge(position_[d.on], position_[d.op]);
    std::sort(pairs_.begin(), pairs_.end());
    pairs_.erase(std::unique(pairs_.begin(), pairs_.end()), pairs_.end());
    const size_t n = source_.size();
    out_.edge_begin.assign(n + 1, 0);
    out_.edges.reserve(pairs_.size());
    size_t p = 0;
    for (OpId op = 0; op < n; ++op) {
      out_.edge_begin[op] = static_cast<uint32_t>(out_.edges.size());
      for (; p < pairs_.size() && pairs_[p].first == op; ++p) {
        // Order in a lane is an edge already.
        if (lane(pairs_[p].second) != lane(op)) out_.edges.push_back(pairs_[p].second);
      }
    }
    out_.edge_begin[n] = static_cast<uint32_t>(out_.edges.size());
  }

  // gap = what remains between the last predecessor's recorded end and the recorded start. A host
  // call that waited for a stream keeps as duration only what it did after the wait was over.
  void measure_gaps() {
    const Nanos origin = ops_.size() == 0 ? 0 : ops_.start.front();
    for (OpId op = 0; op < source_.size(); ++op) {
      const LaneId l = lane(op);
      const bool first = op == out_.lane_begin[l];
      const bool waits = out_.kind[op] == OpKind::kSync;
      Nanos ready = first ? origin : end(op - 1);
      Nanos released = start(op);
      for (OpId before : out_.predecessors(op)) {
        if (waits && out_.on_gpu(lane(before))) {
          released = std::max(released, end(before));
        } else {
          ready = std::max(ready, end(before));
        }
      }
      out_.gap[op] = std::clamp<Nanos>(start(op) - ready, 0, kLongest);
      if (waits) out_.duration[op] = std::max<Nanos>(0, end(op) - released);
    }
  }

  void place_steps() {
    const size_t lanes = rank_.lanes.size();
    out_.step_begin.assign(lanes * (steps_ + 1), 0);
    // A stream operation belongs to the step in which it was launched.
    std::vector<Nanos> issued(source_.size());
    for (OpId op = 0; op < source_.size(); ++op) {
      issued[op] = start(op);
      if (!out_.on_gpu(lane(op))) continue;
      for (OpId before : out_.predecessors(op)) {
        if (!out_.on_gpu(lane(before))) issued[op] = start(before);
      }
    }
    for (LaneId l = 0; l < lanes; ++l) {
      OpId op = out_.lane_begin[l];
      for (uint32_t s = 0; s <= steps_; ++s) {
        Nanos from = std::numeric_limits<Nanos>::min();
        if (steps_ > 0) from = s < steps_ ? rank_.steps[s].start : rank_.steps[steps_ - 1].end;
        while (op < out_.lane_begin[l + 1] && issued[op] < from) ++op;
        out_.step_begin[l * (steps_ + 1) + s] = op;
      }
    }
  }

  const RankTrace& rank_;
  const Operations& ops_;
  uint32_t steps_;
  Findings& findings_;
  RankProgram out_;
  std::vector<bool> named_;       // recorded op: in a dependency; empty: none is
  std::vector<uint32_t> source_;  // program op -> recorded op
  std::vector<OpId> position_;    // recorded op -> program op
  std::vector<std::pair<int64_t, OpId>> launched_;
  std::vector<std::pair<OpId, OpId>> pairs_;  // (to, from)
  std::vector<std::vector<OpId>> pending_waits_;
  std::vector<OpId> last_enqueued_;
  std::unordered_map<uint64_t, OpId> events_;
};

}  // namespace

Result<RankProgram> build_rank_program(const RankTrace& rank, uint32_t steps, Findings& findings) {
  if (rank.steps.size() < steps) {
    return fail(Code::kInternal, "rank has fewer steps than asked for",
                "rank " + std::to_string(rank.rank));
  }
  return RankBuilder(rank, steps, findings).build();
}

Result<Program> build_program(const Trace& trace) {
  Program program;
  program.communicators = trace.communicators;
  size_t steps = trace.ranks.empty() ? 0 : trace.ranks.front().steps.size();
  for (const RankTrace& rank : trace.ranks) steps = std::min(steps, rank.steps.size());
  program.steps = static_cast<uint32_t>(steps);
  for (const RankTrace& rank : trace.ranks) {
    if (rank.steps.size() != steps) {
      program.findings.add(
          "uneven-steps", Severity::kWarning, "rank " + std::to_string(rank.rank),
          "ranks recorded different numbers of steps; times are of those all have");
    }
    RH_TRY(RankProgram built, build_rank_program(rank, program.steps, program.findings));
    program.ranks.push_back(std::move(built));
  }
  return program;
}

size_t Program::operations() const {
  size_t n = 0;
  for (const RankProgram& r : ranks) n += r.size();
  return n;
}

int Program::find(RankId rank) const {
  const auto at = std::lower_bound(ranks.begin(), ranks.end(), rank,
                                   [](const RankProgram& r, RankId id) { return r.rank < id; });
  return at != ranks.end() && at->rank == rank ? static_cast<int>(at - ranks.begin()) : -1;
}

}  // namespace rehearse::traces
