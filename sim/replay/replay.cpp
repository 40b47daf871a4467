// SPDX-License-Identifier: Apache-2.0
#include "sim/replay/replay.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "sim/replay/meetings.hpp"

namespace rehearse::sim {
namespace {

using traces::Call;
using traces::kNoCall;
using traces::LaneId;
using traces::Program;
using traces::RankProgram;

// Where a lane stands.
struct LaneState {
  OpId cursor = 0;
  OpId last = 0;
  Nanos free = 0;           // when the operation before the cursor ended
  OpId waits_for = 0;       // blocked until this operation has ended
  uint32_t calls_open = 0;  // calls of the group at the cursor that have not ended
  enum : uint8_t { kRunnable, kWaitsForOp, kInCall, kDone } state = kRunnable;
};

// The distinct calls: each has its traffic declared once.
struct Shape {
  Nanos latency = 0;
  std::vector<std::pair<RouteId, double>> flows;
};

class Evaluator final : public FabricListener {
 public:
  Evaluator(const Program& program, const TrafficOf& traffic, std::span<const BytesPerSec> capacity,
            Fabric& fabric, Reporter& reporter)
      : program_(program),
        traffic_(traffic),
        capacity_(capacity),
        fabric_(fabric),
        reporter_(reporter) {}

  Result<Replayed> run() {
    arrange_meetings(program_, out_);
    RH_TRY(bool declared, declare_traffic());
    (void)declared;
    set_up_lanes();
    for (size_t r = 0; r < lanes_.size(); ++r) advance(r);
    if (auto done = fabric_.run(*this); !done) return tl::unexpected(done.error());
    if (too_long_) return tl::unexpected(run_too_long().error());
    if (reporter_.interrupted()) return fail(Code::kInterrupted, "stopped");
    finish();
    return std::move(out_);
  }

 private:
  // Every route must be known before the fabric runs.
  Result<bool> declare_traffic() {
    out_.shape_of.assign(out_.meetings.size(), UINT32_MAX);
    std::map<std::tuple<uint32_t, int, Bytes, Bytes, int, int, uint32_t>, uint32_t> known;
    for (size_t r = 0; r < program_.ranks.size(); ++r) {
      const RankProgram& rank = program_.ranks[r];
      for (size_t c = 0; c < rank.calls.size(); ++c) {
        uint32_t& shape = out_.shape_of[out_.meeting_of[r][c]];
        if (shape != UINT32_MAX) continue;
        const auto [call, member] = as_sent(rank.calls[c], rank.rank);
        const auto key =
            std::make_tuple(call.communicator, static_cast<int>(call.collective), call.bytes_in,
                            call.bytes_out, static_cast<int>(call.dtype), call.peer, member);
        const auto [at, fresh] = known.emplace(key, static_cast<uint32_t>(shapes_.size()));
        shape = at->second;
        if (!fresh) continue;
        RH_TRY(CallTraffic traffic, traffic_(call, member));
        add_shape(call, traffic);
      }
    }
    return true;
  }

  // A recv as its sender sees it, and the member who sends; collectives as they are.
  [[nodiscard]] std::pair<Call, uint32_t> as_sent(Call call, traces::RankId rank) const {
    if (!traces::is_point_to_point(call.collective)) return {call, 0};
    const auto& members = program_.communicators[call.communicator].members;
    const auto at = std::find(members.begin(), members.end(), rank);
    auto self = static_cast<int32_t>(at - members.begin());
    if (call.collective == traces::Collective::kRecv) {
      call.collective = traces::Collective::kSend;
      std::swap(self, call.peer);
    }
    call.bytes_in = call.bytes_out = std::max(call.bytes_in, call.bytes_out);
    return {call, static_cast<uint32_t>(self)};
  }

  void add_shape(const Call& call, const CallTraffic& traffic) {
    Shape shape;
    shape.latency = traffic.latency;
    Replayed::Shape report;
    report.communicator = call.communicator;
    report.algorithm = traffic.algorithm;
    report.bus_bytes = traffic.bus_bytes;
    report.bytes = static_cast<double>(std::max(call.bytes_in, call.bytes_out));
    double slowest = 0;
    for (const FlowLoad& flow : traffic.flows) {
      shape.flows.emplace_back(fabric_.add_route(flow.links, {flow.cap, call.communicator}),
                               flow.bytes);
      for (const LinkWeight& use : flow.links) {
        const double time = flow.bytes * use.weight / capacity_[use.link];
        if (time > slowest) {
          slowest = time;
          report.bottleneck = use.link;
        }
      }
    }
    shapes_.push_back(std::move(shape));
    out_.shapes.push_back(std::move(report));
  }

  void set_up_lanes() {
    lanes_.resize(program_.ranks.size());
    out_.end.resize(program_.ranks.size());
    out_.arrival.resize(program_.ranks.size());
    for (size_t r = 0; r < program_.ranks.size(); ++r) {
      const RankProgram& rank = program_.ranks[r];
      out_.end[r].assign(rank.size(), -1);
      out_.arrival[r].assign(rank.calls.size(), -1);
      lanes_[r].resize(rank.lanes.size());
      for (LaneId l = 0; l < rank.lanes.size(); ++l) {
        lanes_[r][l].cursor = rank.lane_begin[l];
        lanes_[r][l].last = rank.lane_begin[l + 1];
      }
    }
  }

  // Advances all lanes of a rank as far as they go.
  void advance(size_t r) {
    bool moved = true;
    while (moved) {
      moved = false;
      for (LaneState& lane : lanes_[r]) {
        ++out_.lane_visits;
        if (lane.state == LaneState::kWaitsForOp && out_.end[r][lane.waits_for] >= 0) {
          lane.state = LaneState::kRunnable;
        }
        if (lane.state != LaneState::kRunnable) continue;
        moved |= advance_lane(r, lane);
      }
    }
  }

  bool advance_lane(size_t r, LaneState& lane) {
    const RankProgram& rank = program_.ranks[r];
    std::vector<Nanos>& end = out_.end[r];
    const OpId began = lane.cursor;
    while (lane.cursor < lane.last) {
      const OpId op = lane.cursor;
      Nanos ready = lane.free;
      for (OpId before : rank.predecessors(op)) {
        if (end[before] < 0) {
          lane.waits_for = before;
          lane.state = LaneState::kWaitsForOp;
          return lane.cursor != began;
        }
        ready = std::max(ready, end[before]);
      }
      if (ready + rank.gap[op] > kEndOfTime - rank.duration[op]) {
        too_long_ = true;  // the lane stays here; run() says why
        lane.state = LaneState::kDone;
        return true;
      }
      ready += rank.gap[op];
      if (rank.call[op] != kNoCall) {
        enter_calls(r, lane, ready);
        return true;
      }
      lane.free = end[op] = ready + rank.duration[op];
      ++lane.cursor;
    }
    lane.state = LaneState::kDone;
    return lane.cursor != began;
  }

  // All calls of one group start together; the lane goes on when all have ended.
  void enter_calls(size_t r, LaneState& lane, Nanos ready) {
    const RankProgram& rank = program_.ranks[r];
    lane.state = LaneState::kInCall;
    lane.free = ready;
    lane.calls_open = 0;
    const uint64_t group = rank.calls[rank.call[lane.cursor]].group;
    OpId op = lane.cursor;
    do {
      ++lane.calls_open;
      ++op;
    } while (group != 0 && op < lane.last && rank.call[op] != kNoCall &&
             rank.calls[rank.call[op]].group == group);
    const OpId past = op;
    for (op = lane.cursor; op < past; ++op) arrive(r, op, ready);
  }

  void arrive(size_t r, OpId op, Nanos when) {
    const RankProgram& rank = program_.ranks[r];
    const uint32_t index = rank.call[op];
    const uint32_t id = out_.meeting_of[r][index];
    out_.arrival[r][index] = when;
    Meeting& meeting = out_.meetings[id];
    const Call& call = rank.calls[index];
    if (meeting.arrived == 0) {
      meeting.call = call;
      meeting.first_arriver = static_cast<uint32_t>(r);
      meeting.first_arrival = meeting.last_arrival = when;
    } else {
      if (meeting.arrived == 1) meeting.second_arriver = static_cast<uint32_t>(r);
      if (!agree(meeting.call, call)) meeting.mismatch = true;
    }
    ++meeting.arrived;
    meeting.first_arrival = std::min(meeting.first_arrival, when);
    if (meeting.last_arriver == UINT32_MAX || when > meeting.last_arrival) {
      meeting.last_arrival = when;
      meeting.last_arriver = static_cast<uint32_t>(r);
      meeting.last_op = op;
    }
    // Once only: a rank that comes twice to one meeting does not start it again.
    if (meeting.arrived == meeting.expected && !meeting.mismatch) {
      fabric_.timer(meeting.last_arrival + shapes_[out_.shape_of[id]].latency, id);
    }
  }

  void on_timer(uint64_t id) override {
    Meeting& meeting = out_.meetings[id];
    const Shape& shape = shapes_[out_.shape_of[id]];
    meeting.flows_left = static_cast<uint32_t>(shape.flows.size());
    if (meeting.flows_left == 0) return complete(static_cast<uint32_t>(id));
    for (const auto& [route, bytes] : shape.flows) fabric_.start(route, bytes, id);
  }

  void on_flow_end(uint64_t id) override {
    if (--out_.meetings[id].flows_left == 0) complete(static_cast<uint32_t>(id));
  }

  void complete(uint32_t id) {
    Meeting& meeting = out_.meetings[id];
    meeting.end = fabric_.now();
    Replayed::Shape& shape = out_.shapes[out_.shape_of[id]];
    ++shape.calls;
    shape.time += meeting.end - meeting.last_arrival;
    if (traces::is_point_to_point(meeting.call.collective)) {
      leave_call(meeting.first_arriver, id, meeting.end);
      if (meeting.second_arriver != UINT32_MAX) leave_call(meeting.second_arriver, id, meeting.end);
    } else {
      for (traces::RankId member : program_.communicators[meeting.communicator].members) {
        const int r = program_.find(member);
        if (r >= 0) leave_call(static_cast<size_t>(r), id, meeting.end);
      }
    }
    ++meetings_done_;
    if (meetings_done_ % 256 == 0)
      reporter_.progress("collectives", meetings_done_, out_.meetings.size());
  }

  void leave_call(size_t r, uint32_t id, Nanos when) {
    const RankProgram& rank = program_.ranks[r];
    bool left = false;
    for (LaneState& lane : lanes_[r]) {
      if (lane.state != LaneState::kInCall) continue;
      for (OpId op = lane.cursor; op < lane.last && rank.call[op] != kNoCall; ++op) {
        if (out_.meeting_of[r][rank.call[op]] != id) {
          if (rank.calls[rank.call[op]].group == 0) break;
          continue;
        }
        if (out_.end[r][op] >= 0 || out_.arrival[r][rank.call[op]] < 0) break;
        out_.end[r][op] = when;
        lane.free = std::max(lane.free, when);
        left = true;
        if (--lane.calls_open == 0) {
          while (lane.cursor < lane.last && out_.end[r][lane.cursor] >= 0) ++lane.cursor;
          lane.state = LaneState::kRunnable;
        }
        break;
      }
    }
    if (left) advance(r);
  }

  void finish() {
    out_.completed = true;
    out_.end_time = fabric_.now();
    for (size_t r = 0; r < lanes_.size(); ++r) {
      for (const LaneState& lane : lanes_[r]) {
        out_.completed &= lane.state == LaneState::kDone;
        out_.end_time = std::max(out_.end_time, lane.free);
      }
    }
    out_.link_bytes = fabric_.bytes_by_link();
    out_.counters = fabric_.counters();
  }

  const Program& program_;
  const TrafficOf& traffic_;
  std::span<const BytesPerSec> capacity_;
  Fabric& fabric_;
  Reporter& reporter_;
  std::vector<std::vector<LaneState>> lanes_;
  std::vector<Shape> shapes_;
  Replayed out_;
  uint64_t meetings_done_ = 0;
  bool too_long_ = false;
};

}  // namespace

Result<Replayed> replay(const traces::Program& program, const TrafficOf& traffic,
                        std::span<const BytesPerSec> capacity, Fabric& fabric, Reporter& reporter) {
  return Evaluator(program, traffic, capacity, fabric, reporter).run();
}

}  // namespace rehearse::sim
