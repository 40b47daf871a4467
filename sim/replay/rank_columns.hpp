// SPDX-License-Identifier: Apache-2.0
// The columns of a rank's program as its lanes read them: pointers side by side in two lines of the cache, where those of
// a RankProgram are spread over a kilobyte. A job of many ranks comes back to each of them after thousands of others and
// then waits for memory, not for the processor. A view: the program must stay as it is.
#pragma once

#include "traces/program/program.hpp"

namespace rehearse::sim {

class RankColumns {
 public:
  explicit RankColumns(const traces::RankProgram& rank)
      : gap(rank.gap, rank.repeat.get()),
        duration(rank.duration, rank.repeat.get()),
        call(rank.call, rank.repeat.get()),
        kind(rank.kind, rank.repeat.get()),
        overlap(rank.overlap, rank.repeat.get()),
        edge_begin_(rank.edge_begin.data()),
        edges_(rank.edges.data()),
        repeat_(rank.repeat.get()),
        call_column_(rank.call) {}

  template <typename T>
  class Part {
   public:
    // A column that was changed is written out, whatever the others are.
    Part(const traces::Column<T>& column, const traces::Repeat* repeat)
        : data_(column.data()), repeat_(column.written() == column.size() ? nullptr : repeat) {}
    [[nodiscard]] bool empty() const { return data_ == nullptr; }
    // As written: numbers of calls do not grow with the copies.
    [[nodiscard]] T operator[](traces::OpId op) const {
      return data_[repeat_ == nullptr ? op : repeat_->locate(op).source];
    }
    // Asks the processor for what stands there.
    void fetch(traces::OpId op) const {
      __builtin_prefetch(data_ + (repeat_ == nullptr ? op : repeat_->locate(op).source));
    }

   private:
    const T* data_;
    const traces::Repeat* repeat_;
  };

  Part<Nanos> gap, duration;
  Part<uint32_t> call;  // kNoCall, or anything else
  Part<traces::OpKind> kind;
  Part<uint16_t> overlap;

  [[nodiscard]] bool repeats() const { return repeat_ != nullptr; }
  // Index into RankProgram::calls, or kNoCall.
  [[nodiscard]] uint32_t call_of(traces::OpId op) const {
    return repeats() ? call_column_[op] : call[op];
  }
  [[nodiscard]] traces::Predecessors predecessors(traces::OpId op) const {
    if (repeat_ == nullptr) {
      return {edges_ + edge_begin_[op], edges_ + edge_begin_[op + 1], nullptr, 0};
    }
    const traces::Repeat::Place at = repeat_->locate(op);
    return {edges_ + edge_begin_[at.source], edges_ + edge_begin_[at.source + 1], repeat_, at.copy};
  }

 private:
  const uint32_t* edge_begin_;
  const traces::OpId* edges_;
  const traces::Repeat* repeat_;
  const traces::Column<uint32_t>& call_column_;
};

}  // namespace rehearse::sim
