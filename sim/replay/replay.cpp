// SPDX-License-Identifier: Apache-2.0
#include "sim/replay/replay.hpp"

#include <algorithm>
#include <unordered_map>

#include "sim/replay/contention.hpp"
#include "sim/replay/link_users.hpp"
#include "sim/replay/meetings.hpp"
#include "sim/replay/message_runs.hpp"
#include "sim/replay/private_calls.hpp"
#include "sim/replay/rank_lanes.hpp"
#include "sim/replay/rank_state.hpp"
#include "sim/replay/rooted.hpp"
#include "sim/replay/shapes.hpp"
#include "sim/replay/tags.hpp"
#include "sim/replay/transfers.hpp"

namespace rehearse::sim {
namespace {

using traces::Program;
using traces::RankProgram;

class Evaluator final : public FabricListener, public Stage {
 public:
  Evaluator(const Program& program, const ReplayOptions& options, Fabric& fabric,
            Reporter& reporter)
      : program_(program), options_(options), fabric_(fabric), reporter_(reporter) {}

  Result<Replayed> run() {
    arrange_meetings(program_, out_);
    LinkUsers users(options_.capacity.size());
    RH_TRY(shapes_, declare_shapes(program_, options_, fabric_, users, out_));
    RH_TRY(transfers_, Transfers::declare(program_, options_, fabric_, users, out_));
    if (options_.director != nullptr) {
      options_.director->declare(fabric_);
      fabric_.timer(0, tag_of(Tag::kBegin, 0, 0));
    }
    set_up();
    if (options_.director == nullptr && !options_.messages) {
      sharers_ = find_private_calls(program_, users, fabric_, out_, shapes_);
    }
    fabric_.set_slack(shortest_latency());
    watch_next();
    for (size_t r = 0; r < lanes_.size() && !reporter_.interrupted(); ++r) {
      queue(r);
      settle_queued();
    }
    if (auto done = fabric_.run(*this); !done) return tl::unexpected(done.error());
    if (reporter_.interrupted()) return fail(Code::kInterrupted, "stopped");
    // Nothing happens any more: later looks see what there is.
    while (!watched_enough() && look(options_.watch->times[looks_])) {
    }
    if (ended_by_watch_) return std::move(out_);
    if (!finish()) return tl::unexpected(run_too_long().error());
    return std::move(out_);
  }

  // Stage.
  [[nodiscard]] Nanos now() const override { return fabric_.now(); }
  void timer(Nanos when, uint64_t tag) override {
    fabric_.timer(when, tag_of(Tag::kDirector, 0, 0) | tag);
  }
  bool set_capacity(LinkId link, BytesPerSec capacity) override {
    return fabric_.set_capacity(link, capacity);
  }
  void start_flow(RouteId route, double bytes, uint64_t tag) override {
    ++foreign_flows_;
    fabric_.start(route, bytes, tag_of(Tag::kDirector, 0, 0) | tag);
  }
  void set_gpu_speed(size_t r, double speed) override {
    lanes_[r].set_rate(now(), {std::max(0.0, speed), lanes_[r].rate().beside});
    queue(r);
  }
  void stop_rank(size_t r) override {
    lanes_[r].stop(now());
    const RankProgram& rank = program_.ranks[r];
    for (size_t c = 0; c < rank.calls.size(); ++c) {
      if (out_.arrival[r][c] < 0 || out_.end[r][rank.call_op[c]] >= 0) continue;
      const uint32_t id = out_.meeting_of[r][c];
      out_.meetings[id].halted = true;
      for (Tag what : {Tag::kWhole, Tag::kHop, Tag::kMessage}) {
        fabric_.halt(kTagKind | kTagId, tag_of(what, 0, id));
      }
    }
    fabric_.halt(kTagKind | kTagId, tag_of(Tag::kTransfer, 0, r));
  }
  [[nodiscard]] Nanos crossing_since(LinkId link) const override {
    return sim::crossing_since(out_, shapes_, fabric_, link);
  }
  [[nodiscard]] bool idle() const override {
    return fabric_.in_flight() <= foreign_flows_ &&
           std::all_of(states_.begin(), states_.end(),
                       [&](const RankState& state) { return state.wake <= now(); });
  }

 private:
  void set_up() {
    const size_t ranks = program_.ranks.size();
    out_.end.resize(ranks);
    out_.arrival.resize(ranks);
    states_.resize(ranks);
    lanes_.reserve(ranks);
    for (size_t r = 0; r < ranks; ++r) {
      const RankProgram& rank = program_.ranks[r];
      out_.end[r].assign(rank.size(), -1);
      out_.arrival[r].assign(rank.calls.size(), -1);
      states_[r].calls_left = rank.calls.size();
      const double beside = rate_beside_calls(rank, out_.meeting_of[r], out_.shape_of, shapes_);
      states_[r].rated = beside < 1 || options_.director != nullptr;
      lanes_.emplace_back(rank, out_.end[r], states_[r].rated, beside, transfers_.stops(r));
    }
  }

  // No flow starts sooner after a rank has come to a call.
  [[nodiscard]] Nanos shortest_latency() const {
    Nanos shortest = shapes_.empty() ? 0 : shapes_.front().latency;
    for (const DeclaredShape& shape : shapes_) shortest = std::min(shortest, shape.latency);
    const Nanos transfer = transfers_.shortest_latency();
    if (transfer >= 0 && (shapes_.empty() || transfer < shortest)) shortest = transfer;
    return std::max<Nanos>(0, shortest);
  }

  // A rank's own time: up to it, nothing that happens elsewhere can change what the rank does.
  [[nodiscard]] Nanos present(size_t r) const { return std::max(now(), states_[r].present); }

  // The rank may be able to go on.
  void queue(size_t r) {
    if (states_[r].queued) return;
    states_[r].queued = true;
    queue_.push_back(r);
  }

  void settle_queued() {
    for (size_t i = 0; i < queue_.size(); ++i) {
      if ((++settled_ & 0xfff) == 0 && reporter_.interrupted()) {
        fabric_.stop();
        break;
      }
      states_[queue_[i]].queued = false;
      settle(queue_[i]);
    }
    queue_.clear();
  }

  // Advances a rank as far as it goes by itself, and asks to be woken when it can go further.
  void settle(size_t r) {
    RankLanes& lanes = lanes_[r];
    RankState& state = states_[r];
    if (lanes.stopped()) return;
    do {
      if (state.calls_left == 0) lanes.want_all();
      do lanes.advance(present(r));
      while (enter_one(r) || leave_known(r));
    } while (look_ahead(r));
    Nanos next = lanes.next_wake(present(r));
    const auto consider = [&](Nanos at) {
      if (at > now() && (next < 0 || at < next)) next = at;
    };
    for (const RankLanes::AtCall& at : lanes.at_call()) consider(at.when);
    for (const KnownEnd& end : state.known) consider(end.at);
    if (options_.director != nullptr && lanes.done()) next = lanes.last_end();
    if (next > now() && (state.wake <= now() || next < state.wake)) {
      state.wake = next;
      fabric_.soft_timer(next, tag_of(Tag::kWake, 0, r));
    }
    if (options_.director != nullptr && !state.ended && lanes.done() && next <= now()) {
      state.ended = true;
      if (++ranks_ended_ == lanes_.size()) fabric_.stop();
    }
  }

  // The rate of a rank's kernels changes only when it enters or leaves a call (or when a director says so). While it
  // is in none whose end is not known, its own time may go on to the next thing that it waits for, without the
  // fabric's clock.
  bool look_ahead(size_t r) {
    RankState& state = states_[r];
    if (!state.rated || state.open > state.known.size() || options_.director != nullptr) {
      return false;
    }
    Nanos next = lanes_[r].next_wake(present(r));
    for (const KnownEnd& end : state.known) {
      if (next < 0 || end.at < next) next = end.at;
    }
    if (next < 0 || next > kEndOfTime) return false;
    for (const RankLanes::AtCall& at : lanes_[r].at_call()) {
      // Who comes to these in which order matters to others.
      if (at.when <= next && !all_together(r, at)) return false;
    }
    state.present = next;
    return true;
  }

  // Leaves the first call whose end is known and has come.
  bool leave_known(size_t r) {
    auto& known = states_[r].known;
    const auto first =
        std::min_element(known.begin(), known.end(),
                         [](const KnownEnd& a, const KnownEnd& b) { return a.at < b.at; });
    if (first == known.end() || (states_[r].rated && first->at > present(r))) return false;
    const KnownEnd end = *first;
    known.erase(first);
    if (out_.meetings[end.meeting].left == 0) {
      const DeclaredShape& shape = shapes_[out_.shape_of[end.meeting]];
      for (const auto& [route, bytes] : shape.flows) fabric_.carry(route, bytes);
    }
    leave(end.who, end.meeting, end.at);
    return true;
  }

  // Enters the first call whose time has come. Members of a call that nobody can leave before all
  // are there may be counted ahead of time, as long as nothing can change when they come.
  bool enter_one(size_t r) {
    const RankProgram& rank = program_.ranks[r];
    RankState& state = states_[r];
    for (const RankLanes::AtCall& found : lanes_[r].at_call()) {
      const RankLanes::AtCall at = found;
      if (at.when > present(r) && (state.rated || !all_together(r, at))) continue;
      if (at.when > now() && !all_together(r, at)) continue;
      if (at.when > kEndOfTime) continue;
      lanes_[r].enter(at);
      state.open += at.past - at.first;
      if (rank.call[at.first] == traces::kNoCall) {
        transfers_.arrive(r, at.first, at.when, fabric_);
        return true;
      }
      if (rank.on_gpu(at.lane)) {
        state.resident += at.past - at.first;
        if (state.rated) lanes_[r].set_rate(present(r), {lanes_[r].rate().speed, true});
      }
      for (OpId op = at.first; op < at.past; ++op) arrive(r, op, at.when);
      return true;
    }
    return false;
  }

  [[nodiscard]] bool all_together(size_t r, const RankLanes::AtCall& at) const {
    if (program_.ranks[r].call[at.first] == traces::kNoCall) return false;  // a transfer
    for (OpId op = at.first; op < at.past; ++op) {
      const uint32_t id = out_.meeting_of[r][program_.ranks[r].call[op]];
      if (!shapes_[out_.shape_of[id]].hops.empty()) return false;
    }
    return true;
  }

  void arrive(size_t r, OpId op, Nanos when) {
    const RankProgram& rank = program_.ranks[r];
    const uint32_t index = rank.call[op];
    const uint32_t id = out_.meeting_of[r][index];
    const DeclaredShape& shape = shapes_[out_.shape_of[id]];
    out_.arrival[r][index] = when;
    Meeting& meeting = out_.meetings[id];
    const traces::Call& call = rank.calls[index];
    join(r, call.communicator, when);
    note_arrival(meeting, {static_cast<uint32_t>(r), op, when}, call, shape.credit);
    meeting.mismatch |= shape.planned_apart;
    if (meeting.mismatch || meeting.halted) return;
    if (!shape.hops.empty()) return arrive_rooted(r, id, call);
    // Once only: a rank that comes twice to one meeting does not start it again.
    if (meeting.arrived != meeting.expected) return;
    const Nanos start = meeting.last_arrival + shape.latency;
    if (shape.alone < 0 || shape.alone > kEndOfTime - start || crowded(id)) {
      return fabric_.timer(start, tag_of(Tag::kWhole, 0, id));
    }
    for (uint32_t i = out_.calls_begin[id]; i < out_.calls_begin[id + 1]; ++i) {
      const MeetingCall who = out_.calls_of[i];
      states_[who.rank].known.push_back({start + shape.alone, id, who});
      queue(who.rank);
    }
  }

  // Is a member of the call in one that may be on its links?
  [[nodiscard]] bool crowded(uint32_t id) const {
    const auto& sharers = sharers_[out_.meetings[id].communicator];
    for (uint32_t i = out_.calls_begin[id]; i < out_.calls_begin[id + 1] && !sharers.empty(); ++i) {
      for (const uint32_t other : states_[out_.calls_of[i].rank].in) {
        if (std::find(sharers.begin(), sharers.end(), other) != sharers.end()) return true;
      }
    }
    return false;
  }

  // A rank enters a call: those it is in whose end was known may no longer be alone on their links.
  void join(size_t r, uint32_t communicator, Nanos when) {
    states_[r].in.push_back(communicator);
    if (sharers_.empty() || states_[r].known.empty()) return;
    const std::vector<KnownEnd> known = states_[r].known;
    for (const KnownEnd& end : known) {
      const auto& sharers = sharers_[out_.meetings[end.meeting].communicator];
      const bool shares = std::find(sharers.begin(), sharers.end(), communicator) != sharers.end();
      if (shares && end.at > when) share_again(end);
    }
  }

  // The end is not known after all: the fabric will tell. Not where a member has left by then: it is in no other call
  // on these links, so nothing is on them.
  void share_again(const KnownEnd& end) {
    const uint32_t id = end.meeting;
    Meeting& meeting = out_.meetings[id];
    if (meeting.left > 0) return;
    for (uint32_t i = out_.calls_begin[id]; i < out_.calls_begin[id + 1]; ++i) {
      std::erase_if(states_[out_.calls_of[i].rank].known,
                    [&](const KnownEnd& known) { return known.meeting == id; });
    }
    const DeclaredShape& shape = shapes_[out_.shape_of[id]];
    const Nanos start = meeting.last_arrival + shape.latency;
    if (start >= now() || shape.flows.empty()) {
      return fabric_.timer(start, tag_of(Tag::kWhole, 0, id));
    }
    const auto& [route, bytes] = shape.flows.front();
    const double left =
        bytes * static_cast<double>(end.at - now()) / static_cast<double>(shape.alone);
    fabric_.carry(route, bytes - left);
    meeting.flows_left = 1;
    fabric_.start(route, left, tag_of(Tag::kWhole, 0, id));
  }

  void arrive_rooted(size_t r, uint32_t id, const traces::Call& call) {
    const DeclaredShape& shape = shapes_[out_.shape_of[id]];
    auto at = rooted_.find(id);
    if (at == rooted_.end()) {
      at = rooted_
               .emplace(id, RootedCall(shape, call.collective,
                                       absent_members(program_, call.communicator)))
               .first;
    }
    RootedCall& rooted = at->second;
    const uint32_t member = member_of(r, id);
    rooted.arrive(member);
    const std::vector<uint32_t> hops = rooted.take_startable();
    const Nanos start = now() + shape.latency;
    if (rooted.is_everything(hops) && !options_.messages) {
      fabric_.timer(start, tag_of(Tag::kWhole, 0, id));
    } else {
      for (uint32_t hop : hops) fabric_.timer(start, tag_of(Tag::kHop, hop, id));
    }
    // All was there before this member: it only has to take it out of its buffer.
    if (rooted.may_leave(member)) fabric_.timer(start, tag_of(Tag::kLateMember, member, id));
  }

  [[nodiscard]] uint32_t member_of(size_t r, uint32_t id) const {
    return static_cast<uint32_t>(
        std::max(0, member_index(program_.communicators[out_.meetings[id].communicator],
                                 program_.ranks[r].rank)));
  }

  void on_timer(uint64_t tag) override {
    if ((++events_ & 0xfff) == 0 && reporter_.interrupted()) return fabric_.stop();
    timer_fired(tag);
    settle_queued();
  }

  void timer_fired(uint64_t tag) {
    const uint32_t id = id_of(tag), part = part_of(tag);
    switch (kind_of(tag)) {
      case Tag::kWhole:
        return start_whole(id);
      case Tag::kHop:
        return start_hop(id, part, tag);
      case Tag::kLateMember:
        return leave_those_who_may(id);
      case Tag::kWake:
        return queue(id);
      case Tag::kDirector:
        return options_.director->on_timer(*this, tag & ~kTagKind);
      case Tag::kBegin:
        return options_.director->begin(*this);
      case Tag::kTransfer:
        if (!lanes_[id].stopped() && transfers_.start(tag, fabric_, out_)) end_transfer(tag);
        return;
      case Tag::kMessage:
        return;  // flows only
    }
  }

  void start_hop(uint32_t id, uint32_t part, uint64_t tag) {
    if (out_.meetings[id].halted) return;
    const DeclaredShape& shape = shapes_[out_.shape_of[id]];
    if (shape.plan.per_hop > 0) return messages_.open_hop(id, shape.plan, part, fabric_);
    fabric_.start(shape.hops[part].route, shape.hops[part].bytes, tag);
  }

  void hop_ended(uint32_t id, uint32_t hop) {
    // Gone when only members that the program does not hold were left.
    const auto at = rooted_.find(id);
    if (at == rooted_.end()) return;
    at->second.hop_ended(hop);
    leave_those_who_may(id);
  }

  void message_ended(uint32_t id, uint32_t m) {
    const DeclaredPlan& plan = shapes_[out_.shape_of[id]].plan;
    const bool all = messages_.ended(id, plan, m, fabric_);
    if (plan.per_hop == 0 && all) whole_ended(id);
    if (plan.per_hop > 0 && (m + 1) % plan.per_hop == 0) hop_ended(id, m / plan.per_hop);
  }

  void start_whole(uint32_t id) {
    Meeting& meeting = out_.meetings[id];
    if (meeting.halted) return;
    const DeclaredShape& shape = shapes_[out_.shape_of[id]];
    if (!shape.plan.route.empty()) return messages_.start(id, shape.plan, fabric_);
    meeting.flows_left = static_cast<uint32_t>(shape.flows.size());
    if (meeting.flows_left == 0) return whole_ended(id);
    for (const auto& [route, bytes] : shape.flows) {
      fabric_.start(route, bytes, tag_of(Tag::kWhole, 0, id));
    }
  }

  void end_transfer(uint64_t tag) {
    lanes_[id_of(tag)].leave(transfers_.operation(tag), now());
    --states_[id_of(tag)].open;
    queue(id_of(tag));
  }

  void on_pause() override {
    if (!look(now())) return fabric_.stop();
    watch_next();
  }

  [[nodiscard]] bool watched_enough() const {
    return ended_by_watch_ || options_.watch == nullptr || looks_ == options_.watch->times.size();
  }

  void watch_next() {
    if (!watched_enough()) fabric_.pause_at(options_.watch->times[looks_]);
  }

  // False: the run is to end.
  bool look(Nanos when) {
    Standing standing{when, out_, fabric_, {}, {}};
    out_.completed = true;
    for (RankLanes& lanes : lanes_) {
      lanes.catch_up(when);
      out_.completed &= lanes.done() && lanes.last_end() <= when;
      standing.speed.push_back(lanes.rate().speed);
      standing.stopped.push_back(lanes.stopped());
    }
    out_.end_time = when;
    out_.link_bytes = fabric_.bytes_by_link();
    ++looks_;
    ended_by_watch_ = !options_.watch->look(standing);
    return !ended_by_watch_;
  }

  void on_flow_end(uint64_t tag) override {
    flow_ended(tag);
    settle_queued();
  }

  void flow_ended(uint64_t tag) {
    const uint32_t id = id_of(tag), part = part_of(tag);
    switch (kind_of(tag)) {
      case Tag::kWhole:
        if (--out_.meetings[id].flows_left == 0) whole_ended(id);
        return;
      case Tag::kHop:
        return hop_ended(id, part);
      case Tag::kMessage:
        return message_ended(id, part);
      case Tag::kTransfer:
        if (transfers_.flow_ended(tag)) end_transfer(tag);
        return;
      case Tag::kDirector:
        --foreign_flows_;
        return options_.director->on_flow_end(*this, tag & ~kTagKind);
      default:
        return;
    }
  }

  void whole_ended(uint32_t id) {
    if (const auto at = rooted_.find(id); at != rooted_.end()) {
      at->second.all_hops_ended();
      return leave_those_who_may(id);
    }
    for (uint32_t i = out_.calls_begin[id]; i < out_.calls_begin[id + 1]; ++i) {
      leave(out_.calls_of[i], id, now());
      queue(out_.calls_of[i].rank);
    }
  }

  void leave_those_who_may(uint32_t id) {
    for (uint32_t i = out_.calls_begin[id]; i < out_.calls_begin[id + 1]; ++i) {
      const auto at = rooted_.find(id);
      if (at == rooted_.end()) return;  // the last has gone
      const MeetingCall call = out_.calls_of[i];
      if (!at->second.may_leave(member_of(call.rank, id))) continue;
      leave(call, id, now());
      queue(call.rank);
    }
  }

  void leave(MeetingCall who, uint32_t id, Nanos at) {
    const size_t r = who.rank;
    const RankProgram& rank = program_.ranks[r];
    const OpId op = who.op;
    if (out_.arrival[r][who.call] < 0 || out_.end[r][op] >= 0 || lanes_[r].stopped()) return;
    RankState& state = states_[r];
    lanes_[r].leave(op, at);
    --state.calls_left;
    --state.open;
    const uint32_t communicator = out_.meetings[id].communicator;
    state.in.erase(std::find(state.in.begin(), state.in.end(), communicator));
    if (rank.on_gpu(lanes_[r].lane_of(op)) && --state.resident == 0 && state.rated) {
      lanes_[r].set_rate(at, {lanes_[r].rate().speed, false});
    }
    if (++out_.meetings[id].left == out_.meetings[id].expected) end_meeting(id, at);
  }

  void end_meeting(uint32_t id, Nanos at) {
    Meeting& meeting = out_.meetings[id];
    meeting.end = at;
    rooted_.erase(id);
    Replayed::Shape& shape = out_.shapes[out_.shape_of[id]];
    ++shape.calls;
    shape.time += meeting.end - meeting.last_arrival;
    furthest_ = std::max(furthest_, at);
    if (++meetings_done_ % 256 == 0) {
      reporter_.progress("collectives, " + format_duration(furthest_) + " simulated",
                         meetings_done_, out_.meetings.size());
    }
  }

  // False: something would end after the end of time.
  bool finish() {
    out_.completed = true;
    out_.end_time = 0;
    bool good = true;
    for (RankLanes& lanes : lanes_) {
      // What hangs on no call has run, whatever happened to the rest.
      lanes.want_all();
      lanes.advance(kEndOfTime);
      out_.completed &= lanes.done();
      out_.end_time = std::max(out_.end_time, lanes.last_end());
      out_.lane_visits += lanes.visits();
      good &= !lanes.too_long();
    }
    for (const Meeting& meeting : out_.meetings) {
      out_.end_time = std::max({out_.end_time, meeting.end, meeting.last_arrival});
    }
    out_.events = events_;
    out_.link_bytes = fabric_.bytes_by_link();
    out_.counters = fabric_.counters();
    return good;
  }

  const Program& program_;
  const ReplayOptions& options_;
  Fabric& fabric_;
  Reporter& reporter_;
  std::vector<RankLanes> lanes_;
  std::vector<DeclaredShape> shapes_;
  std::vector<std::vector<uint32_t>> sharers_;  // by communicator (private_calls.hpp)
  Transfers transfers_;
  MessageRuns messages_;
  std::unordered_map<uint32_t, RootedCall> rooted_;  // by meeting, while it goes on
  std::vector<RankState> states_;                    // by rank
  std::vector<size_t> queue_;                        // ranks to be settled
  Replayed out_;
  uint64_t meetings_done_ = 0;
  Nanos furthest_ = 0;  // the latest end of a call
  uint64_t settled_ = 0;
  uint64_t events_ = 0;
  uint64_t foreign_flows_ = 0;
  size_t ranks_ended_ = 0;
  size_t looks_ = 0;  // of the watch, taken
  bool ended_by_watch_ = false;
};

}  // namespace

Result<Replayed> replay(const traces::Program& program, const ReplayOptions& options,
                        Fabric& fabric, Reporter& reporter) {
  return Evaluator(program, options, fabric, reporter).run();
}

}  // namespace rehearse::sim
