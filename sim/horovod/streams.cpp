// SPDX-License-Identifier: Apache-2.0
#include "sim/horovod/streams.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "sim/horovod/controller.hpp"
#include "sim/host/host_model.hpp"
#include "sim/scenario/environment.hpp"
#include "sim/scenario/rebuild.hpp"
#include "sim/scenario/transform.hpp"

namespace rehearse::sim {
namespace {

using traces::LaneId;
using traces::OpId;

void add_lane(traces::RankProgram& rank, uint32_t steps, LaneId like) {
  traces::Lane lane = rank.lanes[like];
  for (const traces::Lane& other : rank.lanes) lane.id = std::max(lane.id, other.id);
  ++lane.id;
  rank.lanes.push_back(lane);
  const auto end = static_cast<OpId>(rank.size());
  rank.lane_begin.push_back(end);
  rank.step_begin.insert(rank.step_begin.end(), steps + 1, end);
}

// The copies of a fused collective: one operation into the buffer before it, one out of it after it. Two collectives
// with two operations between them are fused ones; what else stands between them is work of its own.
struct Copies {
  OpId in = traces::kNoOp, out = traces::kNoOp;
};

Copies copies_of(const traces::RankProgram& rank, OpId op) {
  const LaneId lane = rank.lane_of(op);
  const auto first = static_cast<int64_t>(rank.lane_begin[lane]);
  const auto end = static_cast<int64_t>(rank.lane_begin[lane + 1]);
  // Operations that are no calls from here to the next call, at most three.
  const auto apart = [&](int64_t direction) {
    int64_t count = 0;
    for (int64_t at = op + direction; at >= first && at < end && count < 3; at += direction) {
      if (rank.call[static_cast<OpId>(at)] != traces::kNoCall) return count;
      ++count;
    }
    // At an end of the lane a copy stands alone.
    return count == 1 ? int64_t{2} : count;
  };
  Copies out;
  if (apart(-1) == 2) out.in = op - 1;
  if (apart(1) == 2) out.out = op + 1;
  return out;
}

// What is not a copy of the collective's own stays before or after it.
void keep_neighbours(traces::RankProgram& rank, OpId op, const Copies& copies,
                     std::vector<std::pair<OpId, OpId>>& waits) {
  const LaneId own = rank.lane_of(op);
  for (OpId before = op; copies.in == traces::kNoOp && before-- > rank.lane_begin[own];) {
    if (rank.call[before] != traces::kNoCall) continue;
    waits.emplace_back(op, before);
    break;
  }
  for (OpId after = op + 1; copies.out == traces::kNoOp && after < rank.lane_begin[own + 1];
       ++after) {
    if (rank.call[after] != traces::kNoCall) continue;
    waits.emplace_back(after, op);
    break;
  }
}

Plan moved(const traces::RankProgram& rank, uint32_t steps, const std::map<OpId, LaneId>& target) {
  const Plan old = plan_of(rank, steps);
  Plan plan;
  plan.lanes.resize(old.lanes.size());
  plan.steps.assign(old.lanes.size(), std::vector<size_t>(steps + 1, 0));
  std::vector<std::vector<std::pair<uint32_t, Planned>>> arrivals(old.lanes.size());  // step, op
  for (size_t l = 0; l < old.lanes.size(); ++l) {
    uint32_t step = 0;  // steps that have begun
    for (size_t i = 0; i < old.lanes[l].size(); ++i) {
      for (; step <= steps && old.steps[l][step] <= i; ++step) {
        plan.steps[l][step] = plan.lanes[l].size();
      }
      const auto to = target.find(old.lanes[l][i].source);
      if (to == target.end()) {
        plan.lanes[l].push_back(old.lanes[l][i]);
      } else {
        arrivals[to->second].emplace_back(step, old.lanes[l][i]);
      }
    }
    for (; step <= steps; ++step) plan.steps[l][step] = plan.lanes[l].size();
  }
  for (size_t l = 0; l < arrivals.size(); ++l) {
    if (arrivals[l].empty()) continue;  // only new lanes get any, and have nothing else
    uint32_t step = 0;
    for (const auto& [begun, op] : arrivals[l]) {
      for (; step < begun && step <= steps; ++step) plan.steps[l][step] = plan.lanes[l].size();
      plan.lanes[l].push_back(op);
    }
    for (; step <= steps; ++step) plan.steps[l][step] = plan.lanes[l].size();
  }
  return plan;
}

class Streams {
 public:
  Streams(const Scenario& scenario, traces::Program& program, std::vector<bool>& grew)
      : launch_(scenario.document.launch()), program_(program), grew_(grew) {}

  Result<void> edit() {
    for (const pb::RankLaunch& seat : launch_.ranks()) {
      const int at = program_.find(seat.rank());
      if (at < 0) continue;
      const HorovodSettings settings = horovod_settings(launch_, seat);
      if (settings.streams < 2) continue;
      auto done = edit(program_.ranks[static_cast<size_t>(at)], settings.streams);
      if (!done) return done;
    }
    return {};
  }

 private:
  uint32_t communicator(uint32_t whole, uint32_t stream) {
    const auto [at, fresh] = made_.emplace(std::pair{whole, stream},
                                           static_cast<uint32_t>(program_.communicators.size()));
    if (fresh) {
      traces::Communicator own = program_.communicators[whole];
      own.id += fmt::format("/stream{}", stream);
      program_.communicators.push_back(std::move(own));
      grew_.push_back(grew_[whole]);
    }
    return at->second;
  }

  Result<void> edit(traces::RankProgram& rank, uint32_t streams) {
    if (auto written = write_out(rank, program_.steps); !written) return written;
    std::map<std::pair<LaneId, uint32_t>, LaneId> lanes;  // by recorded lane and stream
    std::map<OpId, LaneId> target;
    std::vector<std::pair<OpId, OpId>> waits;
    for (size_t c = 0; c < rank.calls.size(); ++c) {
      traces::Call& call = rank.calls[c];
      if (traces::is_point_to_point(call.collective) ||
          host_library(launch_, program_.communicators[call.communicator])) {
        continue;
      }
      const auto stream = static_cast<uint32_t>(std::max<int64_t>(0, call.sequence) % streams);
      call.sequence /= streams;
      if (stream == 0) continue;
      call.communicator = communicator(call.communicator, stream);
      const LaneId own = rank.lane_of(rank.call_op[c]);
      const auto [at, fresh] =
          lanes.emplace(std::pair{own, stream}, static_cast<LaneId>(rank.lanes.size()));
      if (fresh) add_lane(rank, program_.steps, own);
      const OpId op = rank.call_op[c];
      const Copies copies = copies_of(rank, op);
      for (const OpId moving : {op, copies.in, copies.out}) {
        if (moving != traces::kNoOp) target[moving] = at->second;
      }
      keep_neighbours(rank, op, copies, waits);
    }
    if (target.empty()) return {};
    if (!waits.empty()) add_waits(rank, std::move(waits));
    RH_TRY(rank, rebuild(rank, moved(rank, program_.steps, target)));
    return {};
  }

  const pb::Launch& launch_;
  traces::Program& program_;
  std::vector<bool>& grew_;
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> made_;
};

}  // namespace

Result<void> on_several_streams(const Scenario& scenario, traces::Program& program,
                                std::vector<bool>& grew) {
  return Streams(scenario, program, grew).edit();
}

}  // namespace rehearse::sim
