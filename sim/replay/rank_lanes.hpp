// SPDX-License-Identifier: Apache-2.0
// The lanes of one rank: when each operation ends, as far as that can be known without the fabric.
// An operation ends at max(lane, predecessors) + gap + duration; no event is needed for it.
//
// Two kinds of lanes. A firm lane (host threads; all lanes unless `rated`) runs ahead as far as it
// can. A rated lane (streams, when `rated`) is work whose rate changes when a
// collective starts or ends beside it or when the GPU changes its clock: it is evaluated only as
// far as somebody waits for it, what lies after the present is tentative, and set_rate() takes that
// back and goes on from the middle of the operation that runs. So each operation is visited once,
// plus those between the present and what was waited for, once more per change.
//
// A firm lane never uses a tentative end: it waits until the present has reached it (next_wake()).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/replay/op_times.hpp"
#include "sim/replay/rank_columns.hpp"
#include "traces/program/program.hpp"

namespace rehearse::sim {

using traces::OpId;

// How fast a rated lane's work goes, relative to the program.
struct Rate {
  double speed = 1;     // all work of the GPU; 0: it stands still
  bool beside = false;  // a collective is resident: kernels go `beside_rate` times as fast
};

class RankLanes {
 public:
  // `end` is of the program, all never. `stops` are operations that are no calls and whose
  // end is not known here either, ascending: they are entered and left like calls. All must outlive
  // this.
  RankLanes(const traces::RankProgram& program, OpTimes& end, bool rated, double beside_rate,
            std::span<const OpId> stops);

  // Advances every lane as far as `now` allows. Lanes that stand at a call they may enter are left
  // in at_call().
  void advance(Nanos now);
  // Lanes that reached a call: [first, past) are the operations of its group, ready at `when`.
  struct AtCall {
    uint32_t lane = 0;
    OpId first = 0, past = 0;
    Nanos when = 0;
  };
  // Lanes at a call, in order of lanes; those whose call is entered are told by enter().
  [[nodiscard]] const std::vector<AtCall>& at_call() const { return at_call_; }
  void enter(const AtCall& call);
  // One operation of an entered call ended. Its lane.
  uint32_t leave(OpId op, Nanos when);

  // The earliest time at which advance() can go further by itself; -1: never.
  [[nodiscard]] Nanos next_wake(Nanos now) const;
  // From `now` on rated lanes go at this rate.
  void set_rate(Nanos now, Rate rate);
  [[nodiscard]] const Rate& rate() const { return rate_; }
  // Evaluates rated lanes as far as they have come by `now`, also where nobody waits for them.
  void catch_up(Nanos now);
  // No more calls: evaluate everything.
  void want_all();
  // What would end after `now` never does.
  void stop(Nanos now);

  // Asks the processor for what advance() will look at, so that it is there by then.
  void fetch() const;

  [[nodiscard]] bool done() const;
  [[nodiscard]] bool stopped() const { return stopped_; }
  // Of the last operation that ended.
  [[nodiscard]] Nanos last_end() const;
  [[nodiscard]] bool too_long() const { return too_long_; }
  [[nodiscard]] uint64_t visits() const { return visits_; }
  [[nodiscard]] uint32_t lane_of(OpId op) const {
    uint32_t lane = 0;  // few: counting them is cheaper than searching
    for (size_t l = 1; l < lanes_.size(); ++l) lane += lane_begin_[l] <= op ? 1 : 0;
    return lane;
  }
  // As of the program, out of what is at hand here.
  [[nodiscard]] bool on_gpu(uint32_t lane) const { return lanes_[lane].on_gpu; }
  [[nodiscard]] uint32_t call_of(OpId op) const { return columns_.call_of(op); }

 private:
  enum class State : uint8_t { kRunnable, kWaitsForOp, kAtCall, kInCall, kDone };
  struct alignas(64) Lane {  // a line of the cache
    OpId first = 0, cursor = 0, last = 0;
    OpId target = 0;  // rated lanes: evaluate operations before this one
    OpId waits_for = 0;
    OpId stop = UINT32_MAX;     // the next of stops_ on this lane
    Nanos free = 0;             // when the operation before the cursor ended
    uint32_t open = 0;          // operations of the entered group that have not ended
    OpId partial = UINT32_MAX;  // an operation in the middle of which the rate changed,
    Nanos partial_at = 0;       // when,
    double done = 0;            // and its work done by then
    State state = State::kRunnable;
    bool on_gpu = false;
    bool rated = false;
    bool grouped = false;  // some of its calls are of one group: they end in any order
    bool back = false;     // while the rate changes: goes back to the present
  };

  // What it waits for, if anything, has come: advance_lane() may find something to do.
  [[nodiscard]] bool may_advance(const Lane& lane, Nanos now) const;
  // Nothing that has begun lies after `now`.
  [[nodiscard]] bool behind(const Lane& lane, Nanos now) const {
    return lane.cursor == lane.first || end_[lane.cursor - 1] <= now;
  }
  bool advance_lane(uint32_t l, Nanos now, Nanos limit);
  bool advance_rated(uint32_t l, Nanos limit);
  bool advance_firm(uint32_t l, Nanos now);
  [[nodiscard]] bool settled(OpId op, Nanos now) const;
  void want(OpId op);
  [[nodiscard]] Nanos finish(OpId op, Nanos start, const Lane& lane) const;
  [[nodiscard]] double work(OpId op) const;
  [[nodiscard]] double rate_of(OpId op) const;
  [[nodiscard]] OpId group_end(const Lane& lane) const;
  [[nodiscard]] bool stops_at(const Lane& lane, OpId op) const {
    return op == lane.stop || columns_.call[op] != traces::kNoCall;
  }
  void find_stop(Lane& lane) const;
  [[nodiscard]] Nanos ready(OpId op, Nanos free) const;
  // When what stands before the cursor had ended.
  [[nodiscard]] Nanos freed(uint32_t l) const;
  // Copies of repeated steps that all lanes have left behind.
  void settle_copies(Nanos now);
  // What would end after `now` has not; then the lane stands in the middle of what runs.
  void take_back(uint32_t l, Nanos now);
  void resume_at(uint32_t l, Nanos now);

  const traces::RankProgram& program_;
  RankColumns columns_;
  const OpId* lane_begin_;
  OpTimes& times_;
  OpTimes::UnderWay end_;  // of them
  std::span<const OpId> stops_;
  std::vector<Lane> lanes_;
  std::vector<AtCall> at_call_;
  double beside_rate_;
  Rate rate_;
  uint64_t visits_ = 0;
  bool rated_ = false;
  bool wants_moved_ = false;
  bool stopped_ = false;
  bool too_long_ = false;
};

}  // namespace rehearse::sim
