// SPDX-License-Identifier: Apache-2.0
// When each operation of a rank ended. Steps that are repeated (traces/program/repeat.hpp) mostly end like those of an earlier
// copy, so much later: of such a copy only that is kept. Nothing is rounded; a copy that differs is kept whole.
//
// Times are kept inverted, so that memory that nobody has written to says "never" and costs nothing until then. Copies
// share their times: for one run, that is over when it is copied. For one thread at a time.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "traces/program/program.hpp"

namespace rehearse::sim {

using traces::OpId;

class OpTimes {
 public:
  OpTimes() = default;
  // All never. A repeated rank's Repeat is held on to.
  explicit OpTimes(const traces::RankProgram& rank);

  [[nodiscard]] size_t size() const { return size_; }
  // -1: never.
  [[nodiscard]] Nanos operator[](OpId op) const {
    if (op - at_.first >= at_.length) at_ = stretch_of(op);
    const int64_t kept = data_[op - at_.back];
    if (kept == 0) return -1;
    const Nanos when = ~kept + at_.shift;
    return when <= until_ ? when : -1;
  }
  [[nodiscard]] Nanos back() const { return (*this)[static_cast<OpId>(size_ - 1)]; }
  [[nodiscard]] std::vector<Nanos> all() const;
  bool operator==(const OpTimes& other) const { return all() == other.all(); }
  // Not of a copy that has settled.
  void set(OpId op, Nanos when) { data_[op] = ~when; }
  // What would end after `when` never does.
  void cut(Nanos when) { until_ = when; }

  // The same without looking for settled copies: those of operations that are still under way.
  class UnderWay {
   public:
    explicit UnderWay(int64_t* data) : data_(data) {}
    [[nodiscard]] Nanos operator[](OpId op) const { return ~data_[op]; }
    void set(OpId op, Nanos when) const { data_[op] = ~when; }
    void forget(OpId op) const { data_[op] = 0; }
    void fetch(OpId op) const { __builtin_prefetch(data_ + op, 1); }

   private:
    int64_t* data_;
  };
  [[nodiscard]] UnderWay under_way() { return UnderWay(data_.get()); }

  // Copies before this one have settled: their times will not change, and nobody asks under_way() for them.
  void settle(uint32_t copies);
  [[nodiscard]] uint32_t settled() const { return settled_; }
  // Times that are held, for tests of growth.
  [[nodiscard]] size_t held() const { return size_ - released_; }

 private:
  // Operations in a row whose times stand in a row.
  struct Stretch {
    OpId first = 0, length = 0;
    OpId back = 0;    // their times stand so far before
    Nanos shift = 0;  // and are so much earlier
  };
  struct Alike {
    uint32_t copy = 0;  // whose times are kept; its own: they are its own
    Nanos shift = 0;
  };
  struct LaneOf {
    uint32_t like = 0;         // copy that the next one is compared with
    OpId from = 0, until = 0;  // times that were let go of, in a row
  };
  [[nodiscard]] Stretch stretch_of(OpId op) const;
  void settle_lane(size_t lane, uint32_t copy);
  void let_go(LaneOf& of, OpId first, OpId past);

  std::shared_ptr<int64_t[]> data_;  // inverted; 0: never
  std::shared_ptr<const traces::Repeat> repeat_;
  size_t size_ = 0;
  uint32_t settled_ = 0;
  size_t released_ = 0;
  Nanos until_ = INT64_MAX;
  std::vector<LaneOf> lanes_;  // of a repeated rank
  std::vector<Alike> alike_;   // by settled copy and lane
  mutable Stretch at_;         // found last: most operations are looked at one after the other
};

}  // namespace rehearse::sim
