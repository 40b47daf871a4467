// SPDX-License-Identifier: Apache-2.0
#include "sim/replay/rank_lanes.hpp"

#include <algorithm>
#include <cmath>

#include "sim/fabric/fabric.hpp"
#include "sim/replay/starts.hpp"

namespace rehearse::sim {
namespace {

using traces::kNoCall;
using traces::RankProgram;

constexpr double kFullShare = 65535;  // of RankProgram::overlap

}  // namespace

RankLanes::RankLanes(const RankProgram& program, OpTimes& end, bool rated, double beside_rate,
                     std::span<const OpId> stops)
    : program_(program),
      columns_(program),
      lane_begin_(program.lane_begin.data()),
      times_(end),
      end_(end.under_way()),
      stops_(stops),
      lanes_(program.lanes.size()),
      beside_rate_(beside_rate) {
  std::vector<uint32_t> calls(lanes_.size(), 0);
  if (rated) {
    for (OpId op : program.call_op) ++calls[lane_of(op)];
    for (OpId op : stops) ++calls[lane_of(op)];
  }
  for (size_t c = 0; c < program.calls.size(); ++c) {
    if (program.calls[c].group != 0) lanes_[lane_of(program.call_op[c])].grouped = true;
  }
  for (uint32_t l = 0; l < lanes_.size(); ++l) {
    Lane& lane = lanes_[l];
    lane.first = lane.cursor = program.lane_begin[l];
    lane.last = program.lane_begin[l + 1];
    lane.free = program.begin;
    lane.on_gpu = program.on_gpu(l);
    lane.rated = rated && lane.on_gpu;
    find_stop(lane);
    // A call further down is always waited for: by the other ranks. A transfer takes from them.
    lane.target = calls[l] > 0 ? lane.last : lane.cursor;
    rated_ |= lane.rated;
  }
}

void RankLanes::find_stop(Lane& lane) const {
  const auto at = std::lower_bound(stops_.begin(), stops_.end(), lane.cursor);
  lane.stop = at != stops_.end() && *at < lane.last ? *at : UINT32_MAX;
}

bool RankLanes::settled(OpId op, Nanos now) const {
  const Nanos end = end_[op];
  if (end < 0 || end <= now || !rated_) return end >= 0;
  return !lanes_[lane_of(op)].rated;
}

void RankLanes::want(OpId op) {
  if (!rated_) return;
  Lane& lane = lanes_[lane_of(op)];
  if (!lane.rated || lane.target > op) return;
  lane.target = op + 1;
  wants_moved_ = true;
}

void RankLanes::want_all() {
  for (Lane& lane : lanes_) lane.target = lane.last;
}

double RankLanes::rate_of(OpId op) const {
  const bool slowed = rate_.beside && columns_.kind[op] == traces::OpKind::kKernel;
  return slowed ? rate_.speed * beside_rate_ : rate_.speed;
}

double RankLanes::work(OpId op) const {
  const auto duration = static_cast<double>(columns_.duration[op]);
  if (columns_.overlap.empty() || columns_.overlap[op] == 0) return duration;
  // What was recorded beside a collective was recorded at that rate.
  const double share = static_cast<double>(columns_.overlap[op]) / kFullShare;
  return duration * (1 - share * (1 - beside_rate_));
}

Nanos RankLanes::finish(OpId op, Nanos start, const Lane& lane) const {
  const bool partial = lane.partial == op;
  const double rate = rate_of(op);
  const bool as_recorded = columns_.overlap.empty() || columns_.overlap[op] == 0;
  if (!partial && rate == 1 && as_recorded) return start + columns_.duration[op];
  const double left = partial ? std::max(0.0, work(op) - lane.done) : work(op);
  const double time = std::nearbyint(left / rate);
  const Nanos from = partial ? lane.partial_at : start;
  if (time > static_cast<double>(kEndOfTime - from)) return kEndOfTime + 1;
  return from + static_cast<Nanos>(time);
}

Nanos RankLanes::ready(OpId op, Nanos free) const {
  for (OpId before : columns_.predecessors(op)) free = std::max(free, end_[before]);
  return free + columns_.gap[op];
}

OpId RankLanes::group_end(const Lane& lane) const {
  OpId op = lane.cursor + 1;
  if (!lane.grouped || program_.call[lane.cursor] == kNoCall) return op;
  const uint64_t group = program_.calls[program_.call[lane.cursor]].group;
  if (group == 0) return op;
  while (op < lane.last && program_.call[op] != kNoCall &&
         program_.calls[program_.call[op]].group == group) {
    ++op;
  }
  return op;
}

bool RankLanes::advance_firm(uint32_t l, Nanos now) {
  Lane& lane = lanes_[l];
  const OpId began = lane.cursor;
  while (lane.cursor < lane.last) {
    const OpId op = lane.cursor;
    Nanos start = lane.free;
    for (OpId before : columns_.predecessors(op)) {
      const Nanos end = end_[before];
      if (end < 0 || (end > now && !settled(before, now))) {
        lane.waits_for = before;
        lane.state = State::kWaitsForOp;
        want(before);
        return lane.cursor != began;
      }
      start = std::max(start, end);
    }
    start += columns_.gap[op];
    if (start > kEndOfTime - columns_.duration[op]) {
      too_long_ = true;  // the lane stays here; the replay says why
      lane.state = State::kDone;
      return true;
    }
    if (stops_at(lane, op)) {
      lane.state = State::kAtCall;
      at_call_.push_back({l, op, group_end(lane), start});
      return true;
    }
    lane.free = start + columns_.duration[op];
    end_.set(op, lane.free);
    ++lane.cursor;
  }
  lane.state = State::kDone;
  return true;
}

bool RankLanes::advance_rated(uint32_t l, Nanos limit) {
  Lane& lane = lanes_[l];
  const OpId began = lane.cursor;
  const OpId target = limit < kEndOfTime ? lane.last : lane.target;
  while (lane.cursor < target) {
    const OpId op = lane.cursor;
    Nanos start = lane.free;
    for (OpId before : columns_.predecessors(op)) {
      if (end_[before] < 0) {
        lane.waits_for = before;
        lane.state = State::kWaitsForOp;
        want(before);
        return lane.cursor != began;
      }
      start = std::max(start, end_[before]);
    }
    start += columns_.gap[op];
    if (stops_at(lane, op)) {
      if (start > kEndOfTime) too_long_ = true;
      lane.state = State::kAtCall;
      at_call_.push_back({l, op, group_end(lane), start});
      return true;
    }
    // A GPU that stands still: it goes on when the rate changes.
    if (!(rate_.speed > 0) && columns_.duration[op] > 0) return lane.cursor != began;
    const Nanos end = start > kEndOfTime ? kEndOfTime + 1 : finish(op, start, lane);
    if (end > kEndOfTime) {
      too_long_ = true;
      lane.state = State::kDone;
      return true;
    }
    lane.free = end;
    end_.set(op, end);
    ++lane.cursor;
    if (end > limit) return true;
  }
  if (lane.cursor == lane.last) lane.state = State::kDone;
  return lane.cursor != began;
}

inline bool RankLanes::may_advance(const Lane& lane, Nanos now) const {
  if (lane.state != State::kWaitsForOp) return lane.state == State::kRunnable;
  return lane.rated ? end_[lane.waits_for] >= 0 : settled(lane.waits_for, now);
}

inline bool RankLanes::advance_lane(uint32_t l, Nanos now, Nanos limit) {
  Lane& lane = lanes_[l];
  ++visits_;
  if (!may_advance(lane, now)) return false;
  lane.state = State::kRunnable;
  return lane.rated ? advance_rated(l, limit) : advance_firm(l, now);
}

void RankLanes::advance(Nanos now) {
  if (stopped_) return;
  const auto lanes = static_cast<uint32_t>(lanes_.size());
  // Round and round, until every lane was looked at since the last that moved.
  for (uint32_t l = 0, at_rest = 0; at_rest < lanes; l = l + 1 == lanes ? 0 : l + 1) {
    ++at_rest;
    const Lane& lane = lanes_[l];
    if (lane.state > State::kWaitsForOp) continue;
    // Nobody waits for more of it.
    if (lane.rated && lane.state == State::kRunnable && lane.cursor >= lane.target &&
        lane.cursor < lane.last) {
      continue;
    }
    wants_moved_ = false;
    if (advance_lane(l, now, kEndOfTime) || wants_moved_) at_rest = 0;
  }
  if (columns_.repeats()) settle_copies(now);
}

void RankLanes::settle_copies(Nanos now) {
  const traces::Repeat& repeat = *program_.repeat;
  // Two copies behind: what a lane looks back at is of the copy it is in, or ends the one before.
  uint32_t copies = times_.settled();
  for (bool behind = true; behind && copies + 2 < repeat.copies(); copies += behind ? 1 : 0) {
    for (uint32_t l = 0; l < lanes_.size() && behind; ++l) {
      if (repeat.steps(l) == 0) continue;
      const OpId past = repeat.steps_begin(l, copies + 2);
      behind = lanes_[l].cursor >= past && end_[past - 1] <= now;
    }
  }
  if (copies > times_.settled()) times_.settle(copies);
}

void RankLanes::enter(const AtCall& call) {
  Lane& lane = lanes_[call.lane];
  lane.state = State::kInCall;
  lane.free = call.when;
  lane.open = call.past - call.first;
  std::erase_if(at_call_, [l = call.lane](const AtCall& at) { return at.lane == l; });
}

uint32_t RankLanes::leave(OpId op, Nanos when) {
  const uint32_t l = lane_of(op);
  Lane& lane = lanes_[l];
  end_.set(op, when);
  lane.free = std::max(lane.free, when);
  if (--lane.open > 0) return l;
  while (lane.cursor < lane.last && end_[lane.cursor] >= 0) ++lane.cursor;
  if (op == lane.stop) find_stop(lane);
  lane.state = State::kRunnable;
  return l;
}

Nanos RankLanes::next_wake(Nanos now) const {
  Nanos next = -1;
  const auto consider = [&](Nanos when) {
    if (when > now && (next < 0 || when < next)) next = when;
  };
  for (const AtCall& at : at_call_) consider(at.when);
  if (!rated_) return next;
  for (const Lane& lane : lanes_) {
    if (lane.state == State::kWaitsForOp) consider(end_[lane.waits_for]);
  }
  return next;
}

Nanos RankLanes::freed(uint32_t l) const {
  const Lane& lane = lanes_[l];
  if (lane.grouped) return lane_free(program_, end_, l, lane.cursor);
  return lane.cursor == lane.first ? program_.begin : end_[lane.cursor - 1];
}

void RankLanes::take_back(uint32_t l, Nanos now) {
  Lane& lane = lanes_[l];
  while (lane.cursor > lane.first && end_[lane.cursor - 1] > now) end_.forget(--lane.cursor);
}

void RankLanes::resume_at(uint32_t l, Nanos now) {
  Lane& lane = lanes_[l];
  lane.free = freed(l);
  lane.state = State::kRunnable;
  const OpId op = lane.cursor;
  if (op == lane.last || stops_at(lane, op)) return;
  for (OpId before : columns_.predecessors(op)) {
    if (end_[before] < 0 || end_[before] > now) return;
  }
  const Nanos from = lane.partial == op ? lane.partial_at : ready(op, lane.free);
  if (from >= now) return;
  if (lane.partial != op) lane.done = 0;
  lane.done += static_cast<double>(now - from) * rate_of(op);
  lane.partial = op;
  lane.partial_at = now;
}

void RankLanes::catch_up(Nanos now) {
  if (!rated_ || stopped_) return;
  bool moved = true;
  while (moved) {
    wants_moved_ = moved = false;
    for (uint32_t l = 0; l < lanes_.size(); ++l) {
      Lane& lane = lanes_[l];
      if (!lane.rated || lane.state == State::kDone) continue;
      if (behind(lane, now)) moved |= advance_lane(l, now, now);
    }
  }
}

void RankLanes::set_rate(Nanos now, Rate rate) {
  if (rate.speed == rate_.speed && rate.beside == rate_.beside) return;
  if (rated_ && !stopped_) {
    catch_up(now);  // what has begun by now was done at the old rate
    for (Lane& lane : lanes_) {
      // One that has ended, or waits for what has not, goes on from where it stands.
      const bool stands =
          (lane.cursor == lane.last || (lane.state == State::kWaitsForOp &&
                                        lane.cursor < lane.target && end_[lane.waits_for] < 0)) &&
          behind(lane, now);
      lane.back = lane.rated && lane.state != State::kInCall && !stands;
    }
    std::erase_if(at_call_, [&](const AtCall& at) {
      Lane& lane = lanes_[at.lane];
      if (!lane.rated) return false;
      if (at.when <= now) lane.back = false;  // it has come
      return at.when > now;
    });
    // Ends that lie ahead go first: a lane's start may hang on another lane's.
    for (uint32_t l = 0; l < lanes_.size(); ++l) {
      if (lanes_[l].back) take_back(l, now);
    }
    for (uint32_t l = 0; l < lanes_.size(); ++l) {
      if (lanes_[l].back) resume_at(l, now);
    }
  }
  rate_ = rate;
}

void RankLanes::stop(Nanos now) {
  if (stopped_) return;
  set_rate(now, {0, rate_.beside});
  stopped_ = true;
  at_call_.clear();
  for (uint32_t l = 0; l < lanes_.size(); ++l) {
    Lane& lane = lanes_[l];
    if (lane.rated || lane.state == State::kInCall) continue;
    take_back(l, now);
    lane.free = freed(l);
  }
}

void RankLanes::fetch() const {
  constexpr OpId kLine = 64 / sizeof(Nanos);
  if (columns_.repeats()) return;  // what repeats is short, and there already
  for (const Lane& lane : lanes_) {
    if (lane.state == State::kDone) continue;
    end_.fetch(lane.waits_for);
    for (OpId op = lane.cursor; op < lane.last && op <= lane.cursor + 2 * kLine; op += kLine) {
      end_.fetch(op);
      columns_.duration.fetch(op);
      for (OpId before : columns_.predecessors(op)) end_.fetch(before);
    }
  }
}

bool RankLanes::done() const {
  return !stopped_ && std::all_of(lanes_.begin(), lanes_.end(),
                                  [](const Lane& lane) { return lane.state == State::kDone; });
}

Nanos RankLanes::last_end() const {
  Nanos last = 0;
  for (const Lane& lane : lanes_) last = std::max(last, lane.free);
  return last;
}

}  // namespace rehearse::sim
