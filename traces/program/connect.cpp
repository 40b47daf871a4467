// SPDX-License-Identifier: Apache-2.0
#include "traces/program/connect.hpp"

#include <algorithm>
#include <numeric>
#include <string>
#include <unordered_map>

namespace rehearse::traces {
namespace {

// Does a recorded operation of this kind become one of the program?
bool is_work(OpKind kind) {
  return kind != OpKind::kHost && kind != OpKind::kAnnotation && kind != OpKind::kMemory;
}

class Connector {
 public:
  Connector(Draft& draft, Findings& findings) : d_(draft), findings_(findings) {}

  void connect() {
    const size_t lanes = d_.rank.lanes.size();
    index_correlations();
    pending_.resize(lanes);
    waits_.assign(lanes, 0);
    last_.assign(lanes, kNoOp);
    std::vector<bool> was_launched(d_.source.size(), false);
    OpId latest = kNoOp;  // host call with the latest end so far
    for (size_t i = 0; i < d_.ops.size(); ++i) {
      const OpId op = d_.position[i];
      const LaneId lane = d_.ops.lane[i];
      if (op == kNoOp || d_.out.on_gpu(lane)) continue;
      if (d_.ops.kind[i] == OpKind::kCall) add_call(op);
      if (d_.rank.lanes[lane].kind == LaneKind::kProxy) {
        serve(op);
        continue;
      }
      hand_over(op, latest);
      if (latest == kNoOp || d_.end(op) >= d_.end(latest)) latest = op;
      if (const Sync* sync = d_.ops.sync(i)) synchronise(op, *sync);
      if (d_.ops.kind[i] == OpKind::kSync || d_.ops.correlation[i] == 0) continue;
      const auto [first, last] = launched_by(d_.ops.correlation[i]);
      enqueue(op, first, last);
      for (auto it = first; it != last; ++it) was_launched[it->second] = true;
    }
    for (const Dependency& told : d_.ops.dependencies) {
      d_.recorded_edge(d_.position[told.on], d_.position[told.op]);
    }
    for (OpId op = 0; op < d_.source.size(); ++op) {
      if (!d_.out.on_gpu(d_.lane(op)) || was_launched[op]) continue;
      add_call(op);
      findings_.add("work-without-launch", Severity::kInfo,
                    "rank " + std::to_string(d_.rank.rank) + ", " + name_of(d_.out.kind[op]) +
                        " at " + std::to_string(d_.start(op)) + " ns",
                    "the host call that launched it was not recorded; it keeps its recorded gap");
    }
  }

 private:
  using Launched = std::vector<std::pair<int64_t, OpId>>;

  // The stream operations by correlation id, in recorded order.
  void index_correlations() {
    for (size_t i = 0; i < d_.ops.size(); ++i) {
      if (d_.position[i] == kNoOp || d_.ops.correlation[i] == 0) continue;
      if (d_.out.on_gpu(d_.ops.lane[i])) {
        launched_.emplace_back(d_.ops.correlation[i], d_.position[i]);
      }
    }
    std::stable_sort(launched_.begin(), launched_.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
  }

  [[nodiscard]] std::pair<Launched::const_iterator, Launched::const_iterator> launched_by(
      int64_t correlation) const {
    const auto by_id = [](const auto& a, const auto& b) { return a.first < b.first; };
    return std::equal_range(launched_.begin(), launched_.end(),
                            std::pair<int64_t, OpId>{correlation, 0}, by_id);
  }

  // One launch and the work it put on streams. A graph launch has many kernels on several streams:
  // what the streams waited for holds the first kernel on each of them.
  void enqueue(OpId launch, Launched::const_iterator first, Launched::const_iterator last) {
    std::vector<OpId> waited;
    const bool graph = last - first > 1;
    if (graph) {
      for (auto it = first; it != last; ++it) {
        auto& pending = pending_[d_.lane(it->second)];
        waited.insert(waited.end(), pending.begin(), pending.end());
        pending.clear();
      }
    }
    std::vector<LaneId> streams;
    for (auto it = first; it != last; ++it) {
      const OpId work = it->second;
      const LaneId stream = d_.lane(work);
      d_.recorded_edge(launch, work);
      for (const OpId from : pending_[stream]) d_.recorded_edge(from, work);
      pending_[stream].clear();
      if (graph && std::find(streams.begin(), streams.end(), stream) == streams.end()) {
        for (const OpId from : waited) d_.recorded_edge(from, work);
        streams.push_back(stream);
      }
      last_[stream] = work;
      uint32_t& waits = waits_[d_.lane(launch)];
      d_.issued.push_back({work, launch, std::exchange(waits, 0)});
      add_call(work);
    }
  }

  void add_call(OpId op) {
    const Call* call = d_.call(op);
    if (call == nullptr || d_.out.call[op] != kNoCall) return;
    d_.out.call[op] = static_cast<uint32_t>(d_.out.calls.size());
    d_.out.calls.push_back(*call);
    d_.out.call_op.push_back(op);
  }

  // The proxy moves the data of the call that its correlation names, or of the last one enqueued; it
  // starts behind that call's launch and holds nobody: the call's own end tells when it was done.
  void serve(OpId op) {
    for (auto it = d_.issued.rbegin(); it != d_.issued.rend(); ++it) {
      if (d_.call(it->op) == nullptr) continue;
      const int64_t mine = d_.ops.correlation[d_.source[op]];
      const bool named = mine != 0 && mine == d_.ops.correlation[d_.source[it->op]];
      if (mine != 0 && !named && it + 1 != d_.issued.rend()) continue;
      named ? d_.recorded_edge(it->launch, op) : d_.inferred_edge(it->launch, op);
      return;
    }
  }

  // A host call that starts after its own thread was idle, while another thread was the last to
  // end: the other thread handed over.
  void hand_over(OpId op, OpId latest) {
    if (latest == kNoOp || d_.lane(latest) == d_.lane(op)) return;
    if (d_.end(latest) > d_.start(op)) return;
    if (!d_.first_of_lane(op) && d_.end(op - 1) > d_.end(latest)) return;
    d_.inferred_edge(latest, op);
  }

  // Everything enqueued on a stream now, and what the stream was told to wait for.
  [[nodiscard]] std::vector<OpId> state_of(size_t stream) const {
    std::vector<OpId> state = pending_[stream];
    if (last_[stream] != kNoOp) state.push_back(last_[stream]);
    return state;
  }

  void synchronise(OpId op, const Sync& sync) {
    const auto stream = static_cast<size_t>(sync.stream_lane);
    const bool known = sync.stream_lane >= 0 && stream < d_.rank.lanes.size();
    const auto event = events_.find(sync.event);
    switch (sync.sync) {
      case SyncKind::kRecord:
        if (known && sync.event != 0) events_[sync.event] = state_of(stream);
        break;
      case SyncKind::kWaitEvent:
        if (known && event != events_.end()) {
          auto& pending = pending_[stream];
          pending.insert(pending.end(), event->second.begin(), event->second.end());
          ++d_.waits_resolved;
        } else {
          ++waits_[d_.lane(op)];
          ++d_.waits_unresolved;
          findings_.add(
              "wait-without-event", Severity::kWarning,
              "rank " + std::to_string(d_.rank.rank) + ", at " + std::to_string(d_.start(op)) +
                  " ns",
              "the trace does not say which event was waited for, so the order of streams "
              "is inferred; record with synchronisation events switched on");
        }
        break;
      case SyncKind::kEvent:
        if (event != events_.end()) {
          for (const OpId from : event->second) d_.recorded_edge(from, op);
        } else {
          wait_for_some_stream(op);
        }
        break;
      case SyncKind::kStream:
        if (known) {
          for (const OpId from : state_of(stream)) d_.recorded_edge(from, op);
        } else {
          wait_for_some_stream(op);
        }
        break;
      case SyncKind::kDevice:
        for (const OpId last : last_) d_.recorded_edge(last, op);
        break;
    }
  }

  // A wait that does not tell for what: the stream that ran dry last before it returned.
  void wait_for_some_stream(OpId op) {
    OpId best = kNoOp;
    for (const OpId last : last_) {
      if (last == kNoOp || d_.end(last) > d_.end(op) || d_.end(last) <= d_.start(op)) continue;
      if (best == kNoOp || d_.end(last) > d_.end(best)) best = last;
    }
    d_.inferred_edge(best, op);
  }

  Draft& d_;
  Findings& findings_;
  Launched launched_;
  std::vector<std::vector<OpId>> pending_;  // by stream: waited for by its next operation
  std::vector<uint32_t> waits_;  // by thread: waits without an event since its last launch
  std::vector<OpId> last_;       // by stream: last operation enqueued
  std::unordered_map<uint64_t, std::vector<OpId>> events_;
};

}  // namespace

void lay_out(Draft& d) {
  const size_t lanes = d.rank.lanes.size();
  std::vector<OpId> count(lanes + 1, 0);
  // Host operations that a recorded dependency names take part in the order of things.
  std::vector<bool> named(d.ops.dependencies.empty() ? 0 : d.ops.size(), false);
  for (const Dependency& told : d.ops.dependencies) named[told.op] = named[told.on] = true;
  const auto takes_part = [&](size_t i) {
    return is_work(d.ops.kind[i]) || (!named.empty() && named[i]);
  };
  for (size_t i = 0; i < d.ops.size(); ++i) {
    if (takes_part(i)) ++count[d.ops.lane[i] + 1u];
  }
  std::partial_sum(count.begin(), count.end(), count.begin());
  d.out.rank = d.rank.rank;
  d.out.lanes = d.rank.lanes;
  d.out.lane_begin = count;
  const size_t n = count.back();
  d.source.resize(n);
  d.position.assign(d.ops.size(), kNoOp);
  std::vector<OpId> next(count.begin(), count.end() - 1);
  for (size_t i = 0; i < d.ops.size(); ++i) {
    if (!takes_part(i)) continue;
    const OpId op = next[d.ops.lane[i]]++;
    d.source[op] = static_cast<uint32_t>(i);
    d.position[i] = op;
  }
  d.out.kind.resize(n);
  d.out.name.resize(n);
  d.out.gap.assign(n, 0);
  d.out.duration.resize(n);
  d.out.call.assign(n, kNoCall);
  for (OpId op = 0; op < n; ++op) {
    d.out.kind[op] = d.ops.kind[d.source[op]];
    d.out.name[op] = d.ops.name[d.source[op]];
    d.out.duration[op] = std::clamp<Nanos>(d.ops.duration[d.source[op]], 0, kLongestTime);
  }
}

void connect(Draft& draft, Findings& findings) { Connector(draft, findings).connect(); }

}  // namespace rehearse::traces
