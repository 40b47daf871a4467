// SPDX-License-Identifier: Apache-2.0
#include "sim/outcome/retimed.hpp"

#include <algorithm>
#include <deque>

namespace rehearse::sim {
namespace {

using traces::kNoCall;
using traces::RankProgram;

OpId past_group(const RankProgram& rank, OpId op, OpId last) {
  const uint64_t group = rank.calls[rank.call[op]].group;
  OpId past = op + 1;
  while (group != 0 && past < last && rank.call[past] != kNoCall &&
         rank.calls[rank.call[past]].group == group) {
    ++past;
  }
  return past;
}

// One pass over the whole program.
class Pass {
 public:
  Pass(const Evidence& evidence, const std::vector<std::vector<Nanos>>& own,
       const Retimed::Without& without)
      : program_(evidence.program), replayed_(evidence.replayed), own_(own), without_(without) {}

  Nanos run() {
    const size_t n = program_.ranks.size();
    ends_.resize(n);
    lanes_.resize(n);
    met_.resize(replayed_.meetings.size());
    queued_.assign(n, true);
    for (size_t r = 0; r < n; ++r) {
      const RankProgram& rank = program_.ranks[r];
      ends_[r].assign(rank.size(), -1);
      for (size_t l = 0; l < rank.lanes.size(); ++l) {
        lanes_[r].push_back({rank.lane_begin[l], rank.lane_begin[l + 1]});
      }
      queue_.push_back(r);
    }
    while (!queue_.empty()) {
      const size_t r = queue_.front();
      queue_.pop_front();
      queued_[r] = false;
      while (advance(r)) {
      }
    }
    return latest_;
  }

 private:
  struct Lane {
    OpId cursor = 0, last = 0;
    OpId entered = 0;  // calls before this one have been arrived at
    Nanos free = 0;
  };
  struct Met {
    uint32_t arrived = 0;
    Nanos last = 0;
    std::vector<std::pair<uint32_t, OpId>> waiting;
  };

  bool advance(size_t r) {
    bool moved = false;
    for (Lane& lane : lanes_[r]) {
      while (lane.cursor < lane.last && step(r, lane)) moved = true;
    }
    return moved;
  }

  bool step(size_t r, Lane& lane) {
    const RankProgram& rank = program_.ranks[r];
    const OpId op = lane.cursor;
    if (rank.call[op] != kNoCall && op < lane.entered) return leave(r, lane);
    Nanos ready = lane.free;
    for (OpId before : rank.predecessors(op)) {
      if (ends_[r][before] < 0) return false;
      ready = std::max(ready, ends_[r][before]);
    }
    if (!(without_.operation && without_.operation(r, op))) ready += own_[r][op];
    if (rank.call[op] == kNoCall) {
      finish(r, op, ready);
      lane.free = ready;
      ++lane.cursor;
      return true;
    }
    lane.entered = past_group(rank, op, lane.last);
    lane.free = ready;
    for (OpId call = op; call < lane.entered; ++call) arrive(r, call, ready);
    return leave(r, lane);
  }

  bool leave(size_t r, Lane& lane) {
    for (OpId op = lane.cursor; op < lane.entered; ++op) {
      if (ends_[r][op] < 0) return false;
    }
    for (; lane.cursor < lane.entered; ++lane.cursor) {
      lane.free = std::max(lane.free, ends_[r][lane.cursor]);
    }
    return true;
  }

  void arrive(size_t r, OpId op, Nanos when) {
    const RankProgram& rank = program_.ranks[r];
    const uint32_t index = rank.call[op];
    const uint32_t id = replayed_.meeting_of[r][index];
    const Meeting& meeting = replayed_.meetings[id];
    Met& met = met_[id];
    ++met.arrived;
    met.last = std::max(met.last, when);
    // One that left before the last had come does not wait for it here either.
    if (replayed_.end[r][op] < meeting.last_arrival) {
      finish(r, op, when + replayed_.end[r][op] - replayed_.arrival[r][index]);
    } else {
      met.waiting.emplace_back(static_cast<uint32_t>(r), op);
    }
    if (met.arrived < meeting.arrived) return;
    const bool free = without_.transfer && without_.transfer(id);
    for (const auto& [other, call] : met.waiting) {
      finish(other, call,
             met.last + (free ? 0 : replayed_.end[other][call] - meeting.last_arrival));
      if (!queued_[other]) {
        queued_[other] = true;
        queue_.push_back(other);
      }
    }
    met.waiting.clear();
  }

  void finish(size_t r, OpId op, Nanos when) {
    ends_[r][op] = when;
    latest_ = std::max(latest_, when);
  }

  const traces::Program& program_;
  const Replayed& replayed_;
  const std::vector<std::vector<Nanos>>& own_;
  const Retimed::Without& without_;
  std::vector<std::vector<Nanos>> ends_;
  std::vector<std::vector<Lane>> lanes_;
  std::vector<Met> met_;
  std::deque<size_t> queue_;
  std::vector<bool> queued_;
  Nanos latest_ = 0;
};

}  // namespace

Retimed::Retimed(const Evidence& evidence) : evidence_(evidence) {
  const Replayed& replayed = evidence.replayed;
  own_.resize(evidence.program.ranks.size());
  for (size_t r = 0; r < own_.size(); ++r) {
    const RankProgram& rank = evidence.program.ranks[r];
    const std::vector<Nanos>& end = replayed.end[r];
    own_[r].assign(rank.size(), 0);
    for (size_t l = 0; l < rank.lanes.size(); ++l) {
      Nanos free = 0;
      for (OpId op = rank.lane_begin[l]; op < rank.lane_begin[l + 1];) {
        Nanos ready = free;
        for (OpId before : rank.predecessors(op)) ready = std::max(ready, end[before]);
        if (rank.call[op] == kNoCall) {
          own_[r][op] = std::max<Nanos>(0, end[op] - ready);
          free = end[op];
          ++op;
          continue;
        }
        own_[r][op] = std::max<Nanos>(0, replayed.arrival[r][rank.call[op]] - ready);
        const OpId past = past_group(rank, op, rank.lane_begin[l + 1]);
        for (; op < past; ++op) free = std::max(free, end[op]);
      }
    }
  }
}

Nanos Retimed::end(const Without& without) const { return Pass(evidence_, own_, without).run(); }

}  // namespace rehearse::sim
