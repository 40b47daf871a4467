// SPDX-License-Identifier: Apache-2.0
#include "traces/program/evaluate.hpp"

#include <algorithm>
#include <map>

namespace rehearse::traces {
namespace {

class Evaluation {
 public:
  explicit Evaluation(const Program& program) : p_(program) {
    for (const RankProgram& rank : p_.ranks) {
      end_.emplace_back(rank.size(), -1);
      cursor_.emplace_back(rank.lane_begin.begin(), rank.lane_begin.end() - 1);
    }
  }

  // False when some lane can never go on.
  bool run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (size_t r = 0; r < p_.ranks.size(); ++r) {
        for (LaneId l = 0; l < p_.ranks[r].lanes.size(); ++l) moved |= advance(r, l);
      }
    }
    for (size_t r = 0; r < p_.ranks.size(); ++r) {
      for (const Nanos end : end_[r]) {
        if (end < 0) return false;
      }
    }
    return true;
  }

  [[nodiscard]] Nanos step() const {
    if (p_.steps == 0 || p_.ranks.empty()) return 0;
    Nanos sum = 0;
    for (size_t r = 0; r < p_.ranks.size(); ++r) {
      const RankProgram& rank = p_.ranks[r];
      Nanos last = 0;
      for (LaneId l = 0; l < rank.lanes.size(); ++l) {
        const OpId past = rank.step_begin[(size_t{l} + 1) * (p_.steps + 1) - 1];
        const OpId before = rank.step_begin[size_t{l} * (p_.steps + 1)];
        if (past > before) last = std::max(last, end_[r][past - 1]);
      }
      sum += last / static_cast<Nanos>(p_.steps);
    }
    return sum / static_cast<Nanos>(p_.ranks.size());
  }

 private:
  struct Meeting {
    size_t arrived = 0;
    Nanos last = 0;
  };

  bool advance(size_t r, LaneId l) {
    const RankProgram& rank = p_.ranks[r];
    OpId& op = cursor_[r][l];
    bool moved = false;
    for (; op < rank.lane_begin[l + 1]; ++op) {
      Nanos ready = op > rank.lane_begin[l] ? end_[r][op - 1] : 0;
      bool free = true;
      for (const OpId before : rank.predecessors(op)) {
        free &= end_[r][before] >= 0;
        ready = std::max(ready, end_[r][before]);
      }
      if (!free) return moved;
      ready += rank.gap[op];
      Nanos length = rank.duration[op];
      if (rank.call[op] != kNoCall && !rank.call_split.empty()) {
        const CallSplit& split = rank.call_split[rank.call[op]];
        if (split.transfer >= 0) {
          if (!meet(r, op, ready)) return moved;
          length = split.transfer;
        }
      }
      end_[r][op] = ready + length;
      moved = true;
    }
    return moved;
  }

  // True when all members are there; `ready` becomes the time of the last.
  bool meet(size_t r, OpId op, Nanos& ready) {
    const RankProgram& rank = p_.ranks[r];
    const Call& call = rank.calls[rank.call[op]];
    Meeting& meeting = meetings_[{call.communicator, call.sequence}];
    if (arrived_.emplace(std::pair(r, op), true).second) {
      ++meeting.arrived;
      meeting.last = std::max(meeting.last, ready);
    }
    if (meeting.arrived < p_.communicators[call.communicator].members.size()) return false;
    ready = meeting.last;
    return true;
  }

  const Program& p_;
  std::vector<std::vector<Nanos>> end_;
  std::vector<std::vector<OpId>> cursor_;
  std::map<std::pair<uint32_t, int64_t>, Meeting> meetings_;
  std::map<std::pair<size_t, OpId>, bool> arrived_;
};

}  // namespace

Nanos recorded_step(const Program& program) {
  Evaluation evaluation(program);
  return evaluation.run() ? evaluation.step() : 0;
}

}  // namespace rehearse::traces
