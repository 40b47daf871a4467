// SPDX-License-Identifier: Apache-2.0
// Steps that are done several times over, without being written down several times: lane by lane, what comes before
// the steps is done once, the steps `copies` times, what comes after them once. Operations are numbered as if all were
// written down; a repeat says which of the written ones (the source) each stands for, and in which copy.
// Shared by the columns of a rank; for one thread at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace rehearse::traces {

using OpId = uint32_t;  // index into the columns of a RankProgram

class Repeat {
 public:
  struct Lane {
    OpId source = 0;  // its first written operation
    OpId before = 0;  // operations before the steps
    OpId steps = 0;   // operations of the steps
    OpId after = 0;   // operations after the steps
  };
  struct Place {
    OpId source = 0;
    uint32_t copy = 0;  // before the steps 0, after them the last
  };

  // `lanes` in order of their operations; copies > 0, and all operations together fewer than OpId counts.
  Repeat(std::vector<Lane> lanes, uint32_t copies) : lanes_(std::move(lanes)), copies_(copies) {
    for (const Lane& lane : lanes_) {
      begin_.push_back(size_);
      source_begin_.push_back(lane.source);
      size_ += lane.before + copies * lane.steps + lane.after;
    }
  }

  [[nodiscard]] uint32_t copies() const { return copies_; }
  [[nodiscard]] OpId size() const { return size_; }
  [[nodiscard]] size_t lanes() const { return lanes_.size(); }
  [[nodiscard]] OpId lane_begin(size_t lane) const { return begin_[lane]; }
  // Operations of the steps of one copy, and the first of them.
  [[nodiscard]] OpId steps(size_t lane) const { return lanes_[lane].steps; }
  [[nodiscard]] OpId steps_begin(size_t lane, uint32_t copy) const {
    return begin_[lane] + lanes_[lane].before + copy * lanes_[lane].steps;
  }

  [[nodiscard]] Place locate(OpId op) const {
    if (op - last_.first >= last_.length) last_ = stretch_of(op);
    return {op - last_.shift, last_.copy};
  }

  // Where a copy of a written operation stands.
  [[nodiscard]] OpId place(OpId source, uint32_t copy) const {
    const size_t l = lane_of(source_begin_, source);
    const Lane& lane = lanes_[l];
    const OpId at = source - lane.source;
    if (at < lane.before) return begin_[l] + at;
    if (at < lane.before + lane.steps) return begin_[l] + at + copy * lane.steps;
    return begin_[l] + at + (copies_ - 1) * lane.steps;
  }

  // Operations in a row that stand for written ones in a row.
  struct Stretch {
    OpId first = 0, length = 0;
    OpId shift = 0;  // operation - source, modulo what an OpId counts
    uint32_t copy = 0;
    uint32_t lane = 0;
    bool repeated = false;  // it belongs to the steps
  };
  [[nodiscard]] Stretch stretch_of(OpId op) const {
    const size_t l = lane_of(begin_, op);
    const Lane& lane = lanes_[l];
    const OpId steps = begin_[l] + lane.before, after = steps + copies_ * lane.steps;
    const auto of = static_cast<uint32_t>(l);
    if (op < steps) return {begin_[l], lane.before, begin_[l] - lane.source, 0, of, false};
    if (op >= after) {
      const OpId shift = after - lane.source - lane.before - lane.steps;
      return {after, lane.after, shift, copies_ - 1, of, false};
    }
    const uint32_t copy = (op - steps) / lane.steps;
    const OpId first = steps + copy * lane.steps;
    return {first, lane.steps, first - lane.source - lane.before, copy, of, true};
  }

 private:
  static size_t lane_of(const std::vector<OpId>& begin, OpId op) {
    return static_cast<size_t>(std::upper_bound(begin.begin(), begin.end(), op) - begin.begin() -
                               1);
  }

  std::vector<Lane> lanes_;
  std::vector<OpId> begin_, source_begin_;  // by lane
  uint32_t copies_ = 1;
  OpId size_ = 0;
  mutable Stretch last_;  // found last: most operations are looked at one after the other
};

}  // namespace rehearse::traces
