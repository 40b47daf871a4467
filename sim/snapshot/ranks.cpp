// SPDX-License-Identifier: Apache-2.0
// Where every lane is. An operation has ended when its end is not after now; the first of a lane that has not is where
// the lane stands. Its state follows from what it waits for; ends of fixed operations that lie ahead hold at the present
// rates.
#include <algorithm>

#include "sim/memory/account.hpp"
#include "sim/replay/starts.hpp"
#include "sim/snapshot/snapshot.hpp"
#include "traces/model/utf8.hpp"

namespace rehearse::sim {
namespace {

using traces::kNoCall;
using traces::LaneId;
using traces::RankProgram;

class LanePlace {
 public:
  LanePlace(const Instant& instant, size_t r, LaneId lane)
      : evidence_(instant.evidence),
        rank_(evidence_.program.ranks[r]),
        end_(evidence_.replayed.end[r]),
        arrival_(evidence_.replayed.arrival[r]),
        moves_(evidence_.replayed.transfer_begin[r]),
        stopped_(instant.standing.stopped[r]),
        now_(instant.standing.now),
        lane_(lane) {}

  void fill(pb::LaneState& out) const {
    const OpId begin = rank_.lane_begin[lane_], past = rank_.lane_begin[lane_ + 1];
    const OpId op = first_open();
    out.set_lane(lane_name(evidence_, rank_.lanes[lane_]));
    out.set_index(op - begin);
    out.set_operations(past - begin);
    const Nanos free = lane_free(rank_, end_, lane_, op);
    out.set_since_ns(free);
    if (op == past) return out.set_state("done");
    out.set_operation(describe(op));
    if (stopped_) return out.set_state("stopped");
    Nanos ready = free;
    for (const OpId before : rank_.predecessors(op)) {
      if (!ended(before)) {
        out.set_waits_for(describe(before) + " of " +
                          lane_name(evidence_, rank_.lanes[rank_.lane_of(before)]));
        return out.set_state("waiting");
      }
      ready = std::max(ready, end_[before]);
    }
    place(op, ready, out);
  }

 private:
  void place(OpId op, Nanos ready, pb::LaneState& out) const {
    const bool call = rank_.call[op] != kNoCall;
    Nanos start = ready + rank_.gap[op];
    if (call && arrival_[rank_.call[op]] >= 0) start = arrival_[rank_.call[op]];
    if (start > now_) {
      out.set_state("gap");
      out.set_since_ns(ready);
      return out.set_until_ns(start);
    }
    out.set_since_ns(start);
    if (call) return out.set_state("in-call");
    out.set_state(moves(op) ? "moving" : "running");
    if (end_[op] >= 0) out.set_until_ns(end_[op]);
  }

  [[nodiscard]] bool ended(OpId op) const { return end_[op] >= 0 && end_[op] <= now_; }

  // The calls of one group end in any order.
  [[nodiscard]] OpId first_open() const {
    const OpId begin = rank_.lane_begin[lane_], past = rank_.lane_begin[lane_ + 1];
    OpId op = begin;
    for (OpId open = past; op < open;) {
      const OpId middle = op + (open - op) / 2;
      if (ended(middle)) {
        op = middle + 1;
      } else {
        open = middle;
      }
    }
    while (op > begin && !ended(op - 1)) --op;
    while (op < past && ended(op)) ++op;
    return op;
  }

  // Its bytes pass over links, so its end is not known ahead.
  [[nodiscard]] bool moves(OpId op) const {
    const traces::Transfer* transfer = rank_.transfer(op);
    if (transfer == nullptr || end_[op] >= 0) return false;
    const auto index = static_cast<size_t>(transfer - rank_.transfers.data());
    return index < moves_.size();
  }

  [[nodiscard]] std::string describe(OpId op) const {
    if (rank_.call[op] != kNoCall) return describe_call(evidence_, rank_.calls[rank_.call[op]]);
    const traces::Transfer* transfer = rank_.transfer(op);
    if (transfer != nullptr && is_storage(transfer->way)) return name_of(transfer->way);
    return traces::to_utf8(evidence_.names.at(rank_.name[op]));
  }

  const Evidence& evidence_;
  const RankProgram& rank_;
  const OpTimes& end_;
  const std::vector<Nanos>& arrival_;
  const std::vector<Nanos>& moves_;
  bool stopped_;
  Nanos now_;
  LaneId lane_;
};

}  // namespace

void fill_ranks(const Instant& instant, pb::Snapshot& out) {
  const traces::Program& program = instant.evidence.program;
  for (size_t r = 0; r < program.ranks.size(); ++r) {
    pb::RankState& row = *out.add_ranks();
    row.set_rank(program.ranks[r].rank);
    row.set_stopped(instant.standing.stopped[r]);
    row.set_gpu_speed(instant.standing.stopped[r] ? 0 : instant.standing.speed[r]);
    row.set_step(place_in_steps(instant.past, r).step);
    for (LaneId l = 0; l < program.ranks[r].lanes.size(); ++l) {
      LanePlace(instant, r, l).fill(*row.add_lanes());
    }
  }
  for (const MemoryNow& memory : memory_in_use(instant.scenario, instant.past)) {
    pb::RankState& row = *out.mutable_ranks(static_cast<int>(memory.rank));
    row.set_memory(memory.in_use);
    row.set_memory_capacity(memory.capacity);
  }
}

}  // namespace rehearse::sim
