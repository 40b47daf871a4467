// SPDX-License-Identifier: Apache-2.0
#include "traces/program/infer_streams.hpp"

#include <algorithm>
#include <map>
#include <tuple>

namespace rehearse::traces {
namespace {

constexpr Nanos kReact = 10'000;  // from an event to the start of what waited for it
constexpr Nanos kStall = 2'000;   // shorter holds are noise of launches
constexpr Nanos kUnit = 30'000;   // longer between two launches: not one piece of communication
constexpr size_t kNone = SIZE_MAX;
constexpr size_t kFarthest = 100'000;  // launches looked at behind a call

struct ClassKey {
  uint32_t communicator;
  Collective collective;
  Bytes in, out;
  // NOLINTNEXTLINE(modernize-use-nullptr): a comparison with 0
  auto operator<=>(const ClassKey&) const = default;
};

// How calls of one kind are joined.
struct ClassFacts {
  uint64_t passed = 0;      // the next operation launched started before the call ended
  size_t distance = kNone;  // candidates between call and join where times show it
  bool agree = true;        // ... the same for all that show it
};

class StreamOrder {
 public:
  explicit StreamOrder(Draft& draft) : d_(draft), issued_(draft.issued) {}

  void infer() {
    find_streams();
    if (!communicates_) return multi_stream();
    find_homes();
    find_units();
    learn();
    decide();
    connect();
    multi_stream();
  }

 private:
  [[nodiscard]] OpId op(size_t i) const { return issued_[i].op; }
  [[nodiscard]] LaneId lane(size_t i) const { return d_.lane(op(i)); }
  [[nodiscard]] Nanos start(size_t i) const { return d_.start(op(i)); }
  [[nodiscard]] Nanos end(size_t i) const { return d_.end(op(i)); }
  [[nodiscard]] LaneId thread(size_t i) const { return d_.lane(issued_[i].launch); }
  [[nodiscard]] Nanos launched(size_t i) const { return d_.start(issued_[i].launch); }

  // Communication streams are those on which at least a quarter of the operations are calls; the
  // busiest other stream stands for threads that compute nothing themselves.
  void find_streams() {
    const size_t lanes = d_.rank.lanes.size();
    std::vector<uint64_t> calls(lanes, 0), work(lanes, 0);
    std::vector<Nanos> latency;
    for (size_t i = 0; i < issued_.size(); ++i) {
      ++work[lane(i)];
      if (d_.call(op(i)) != nullptr) ++calls[lane(i)];
      latency.push_back(start(i) - launched(i));
    }
    for (size_t l = 0; l < lanes; ++l) {
      communication_.push_back(calls[l] > 0 && calls[l] * 4 >= work[l]);
      communicates_ |= communication_[l];
      if (communication_[l] || work[l] == 0) continue;
      if (busiest_ == kNone || work[l] > work[busiest_]) busiest_ = l;
    }
    const auto low = latency.begin() + static_cast<std::ptrdiff_t>(latency.size() / 100);
    std::nth_element(latency.begin(), low, latency.end());
    latency_ = std::max<Nanos>(*low, 0);
  }

  // The stream whose state a call forks from: where its thread computes.
  void find_homes() {
    std::vector<size_t> current(d_.rank.lanes.size(), kNone);
    home_.assign(issued_.size(), kNone);
    for (size_t i = 0; i < issued_.size(); ++i) {
      size_t& stream = current[thread(i)];
      if (!communication_[lane(i)]) stream = lane(i);
      home_[i] = stream != kNone ? stream : busiest_;
    }
    computes_ = std::move(current);
  }

  // A unit is a call with the kernels that copy into and out of its buffer on the same stream.
  void find_units() {
    unit_end_.assign(issued_.size(), kNone);
    unit_begin_.assign(issued_.size(), false);
    struct Open {
      size_t last = kNone, call = kNone;
    };
    std::vector<Open> open(d_.rank.lanes.size());
    for (size_t i = 0; i < issued_.size(); ++i) {
      if (!communication_[lane(i)]) continue;
      Open& unit = open[lane(i)];
      const bool call = d_.call(op(i)) != nullptr;
      const bool near = unit.last != kNone && thread(i) == thread(unit.last) &&
                        launched(i) - d_.end(issued_[unit.last].launch) < kUnit;
      if (!near || (call && unit.call != kNone)) unit = {};
      if (unit.last == kNone) unit_begin_[i] = true;
      unit.last = i;
      if (call) unit.call = i;
      if (unit.call != kNone) unit_end_[unit.call] = i;
    }
  }

  // The operation on another stream that held this one, if times show one.
  [[nodiscard]] OpId holder(size_t i) const {
    const OpId me = op(i);
    Nanos ready = launched(i) + latency_;
    if (!d_.first_of_lane(me)) ready = std::max(ready, d_.end(me - 1));
    OpId best = kNoOp;
    for (LaneId l = 0; l < d_.rank.lanes.size(); ++l) {
      if (l == lane(i) || !d_.out.on_gpu(l)) continue;
      OpId low = d_.out.lane_begin[l], high = d_.out.lane_begin[l + 1];
      while (low < high) {
        const OpId middle = low + (high - low) / 2;
        d_.end(middle) <= start(i) ? low = middle + 1 : high = middle;
      }
      if (low == d_.out.lane_begin[l]) continue;
      if (best == kNoOp || d_.end(low - 1) > d_.end(best)) best = low - 1;
    }
    if (best == kNoOp || start(i) - d_.end(best) > kReact) return kNoOp;
    return d_.end(best) - ready > kStall ? best : kNoOp;
  }

  // What a join of unit `c` can stand before: work enqueued later from the same home.
  [[nodiscard]] bool candidate(size_t c, size_t k) const {
    if (home_[k] != home_[c] || lane(k) == lane(c)) return false;
    if (d_.waits_unresolved == 0) return true;
    // A call's own fork is one of its waits.
    return issued_[k].waits > (communication_[lane(k)] ? 1u : 0u);
  }

  struct Search {
    size_t next = kNone;      // first candidate at all
    size_t free = kNone;      // first candidate that started after the unit
    size_t distance = kNone;  // candidates before `free`
  };
  [[nodiscard]] Search search(size_t c) const {
    Search s;
    const size_t unit = unit_end_[c];
    size_t seen = 0;
    for (size_t k = unit + 1; k < std::min(issued_.size(), unit + kFarthest); ++k) {
      if (!candidate(c, k)) continue;
      if (s.next == kNone) s.next = k;
      if (start(k) >= end(unit)) {
        s.free = k;
        s.distance = seen;
        return s;
      }
      ++seen;
    }
    return s;
  }

  [[nodiscard]] static ClassKey key(const Call& call) {
    return {call.communicator, call.collective, call.bytes_in, call.bytes_out};
  }

  void learn() {
    searches_.resize(issued_.size());
    shown_.assign(issued_.size(), false);
    for (size_t c = 0; c < issued_.size(); ++c) {
      if (unit_end_[c] == kNone) continue;
      const Search s = searches_[c] = search(c);
      ClassFacts& facts = classes_[key(*d_.call(op(c)))];
      if (s.next != kNone && start(s.next) < end(unit_end_[c])) ++facts.passed;
      if (s.free == kNone || holder(s.free) != op(unit_end_[c])) continue;
      shown_[c] = true;
      if (facts.distance != kNone && facts.distance != s.distance) facts.agree = false;
      facts.distance = s.distance;
    }
  }

  [[nodiscard]] size_t at_distance(size_t c, size_t distance) const {
    for (size_t k = unit_end_[c] + 1; k < std::min(issued_.size(), c + kFarthest); ++k) {
      if (candidate(c, k) && distance-- == 0) return k;
    }
    return kNone;
  }

  [[nodiscard]] size_t after_next_on_stream(size_t c) const {
    bool passed = false;
    for (size_t k = unit_end_[c] + 1; k < std::min(issued_.size(), c + kFarthest); ++k) {
      passed |= lane(k) == lane(c);
      if (passed && candidate(c, k)) return k;
    }
    return kNone;
  }

  [[nodiscard]] size_t join_of(size_t c) const {
    const Call& call = *d_.call(op(c));
    const Search& s = searches_[c];
    const ClassFacts& facts = classes_.at(key(call));
    if (call.collective == Collective::kSend || s.free == kNone) return kNone;
    if (facts.passed == 0 || shown_[c]) return s.free;
    if (facts.distance != kNone && facts.agree && facts.distance > s.distance) {
      return at_distance(c, facts.distance);
    }
    switch (call.collective) {
      case Collective::kAllGather: {
        const size_t k = after_next_on_stream(c);
        return k != kNone && start(k) >= end(unit_end_[c]) ? k : s.free;
      }
      case Collective::kAllReduce:
      case Collective::kReduceScatter:
      case Collective::kReduce:
        return kNone;
      default:
        return s.free;
    }
  }

  void decide() {
    for (size_t c = 0; c < issued_.size(); ++c) {
      if (unit_end_[c] == kNone) continue;
      if (const size_t k = join_of(c); k != kNone) joins_[k].push_back(op(unit_end_[c]));
    }
  }

  // When the work of a launch was handed to its thread: threads that only communicate first
  // negotiate, inside operators that are recorded without a gap before the launch.
  [[nodiscard]] Nanos handed(size_t i) const {
    if (computes_[thread(i)] != kNone) return launched(i);
    Nanos at = launched(i);
    for (uint32_t r = d_.source[issued_[i].launch]; r-- > 0;) {
      if (d_.ops.lane[r] != thread(i) || d_.ops.kind[r] == OpKind::kAnnotation) continue;
      if (d_.ops.kind[r] != OpKind::kHost) break;
      if (d_.ops.start[r] + d_.ops.duration[r] < at - kReact) break;
      at = d_.ops.start[r];
    }
    return at;
  }

  void connect() {
    std::vector<std::vector<size_t>> enqueued(d_.rank.lanes.size());
    std::vector<std::vector<OpId>> pending(d_.rank.lanes.size());
    for (size_t i = 0; i < issued_.size(); ++i) {
      const size_t home = home_[i];
      if (const auto join = joins_.find(i); join != joins_.end() && home != kNone) {
        pending[home].insert(pending[home].end(), join->second.begin(), join->second.end());
      }
      if (!communication_[lane(i)]) {
        for (const OpId from : pending[lane(i)]) d_.inferred_edge(from, op(i));
        pending[lane(i)].clear();
      } else if (unit_begin_[i] && home != kNone) {
        fork(i, enqueued[home], pending[home]);
      }
      enqueued[lane(i)].push_back(i);
    }
  }

  void fork(size_t i, const std::vector<size_t>& enqueued, const std::vector<OpId>& pending) {
    for (const OpId from : pending) {
      if (d_.lane(from) != lane(i) && d_.end(from) <= start(i)) d_.inferred_edge(from, op(i));
    }
    const Nanos at = handed(i);
    const auto past = std::partition_point(enqueued.begin(), enqueued.end(),
                                           [&](size_t k) { return launched(k) < at; });
    if (past == enqueued.begin()) return;
    const size_t before = *(past - 1);
    if (end(before) <= start(i)) return d_.inferred_edge(op(before), op(i));
    const OpId held = holder(i);
    if (held != kNoOp && d_.lane(held) == home_[i]) d_.inferred_edge(held, op(i));
  }

  // Streams that compute, of which one holds the other: an operation that is held at all is always
  // held by one of that name.
  void multi_stream() {
    struct Held {
      size_t i;
      OpId by;
    };
    std::vector<Held> held;
    std::map<std::pair<uint32_t, LaneId>, std::map<uint32_t, uint64_t>> by_name;
    for (size_t i = 0; i < issued_.size(); ++i) {
      if (communication_[lane(i)]) continue;
      const OpId by = holder(i);
      if (by == kNoOp) continue;
      const bool computes = !communication_[d_.lane(by)];
      ++by_name[{d_.out.name[op(i)], lane(i)}][computes ? d_.out.name[by] + 1 : 0];
      if (computes) held.push_back({i, by});
    }
    for (const Held& h : held) {
      const auto& seen = by_name[{d_.out.name[op(h.i)], lane(h.i)}];
      uint64_t all = 0;
      for (const auto& [name, count] : seen) all += count;
      if (seen.at(d_.out.name[h.by] + 1) * 10 >= all * 9) d_.inferred_edge(h.by, op(h.i));
    }
  }

  Draft& d_;
  const std::vector<Draft::Issued>& issued_;
  std::vector<bool> communication_;  // by lane
  bool communicates_ = false;
  size_t busiest_ = kNone;
  Nanos latency_ = 0;             // from a launch to the start on an idle stream
  std::vector<size_t> home_;      // by entry of issued
  std::vector<size_t> computes_;  // by host lane: the stream it computes on, or kNone
  std::vector<size_t> unit_end_;  // by entry of issued: last entry of the unit of this call
  std::vector<bool> unit_begin_;
  std::vector<Search> searches_;
  std::vector<bool> shown_;
  std::map<ClassKey, ClassFacts> classes_;
  std::map<size_t, std::vector<OpId>> joins_;
};

}  // namespace

void infer_stream_order(Draft& draft) {
  if (draft.waits_resolved > 0 || draft.issued.empty()) return;
  if (!draft.ops.dependencies.empty()) return;
  StreamOrder(draft).infer();
}

}  // namespace rehearse::traces
