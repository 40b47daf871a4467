// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "sim/replay/evaluator.hpp"
#include "sim/replay/meetings.hpp"

namespace rehearse::sim {

void Evaluator::arrive(size_t r, OpId op, Nanos when) {
  const uint32_t index = lanes_[r].call_of(op);
  const uint32_t id = out_.meeting_of[r][index];
  const DeclaredShape& shape = shapes_[out_.shape_of[id]];
  out_.arrival[r][index] = when;
  Meeting& meeting = out_.meetings[id];
  const traces::Call& call = program_.ranks[r].calls[index];
  join(r, meeting.communicator, when);
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

bool Evaluator::crowded(uint32_t id) const {
  const auto& sharers = sharers_[out_.meetings[id].communicator];
  for (uint32_t i = out_.calls_begin[id]; i < out_.calls_begin[id + 1] && !sharers.empty(); ++i) {
    for (const uint32_t other : states_[out_.calls_of[i].rank].in) {
      if (std::find(sharers.begin(), sharers.end(), other) != sharers.end()) return true;
    }
  }
  return false;
}

void Evaluator::join(size_t r, uint32_t communicator, Nanos when) {
  states_[r].in.push_back(communicator);
  if (sharers_.empty() || states_[r].known.empty()) return;
  const std::vector<KnownEnd> known = states_[r].known;
  for (const KnownEnd& end : known) {
    const auto& sharers = sharers_[out_.meetings[end.meeting].communicator];
    const bool shares = std::find(sharers.begin(), sharers.end(), communicator) != sharers.end();
    if (shares && end.at > when) share_again(end);
  }
}

void Evaluator::share_again(const KnownEnd& end) {
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

void Evaluator::arrive_rooted(size_t r, uint32_t id, const traces::Call& call) {
  const DeclaredShape& shape = shapes_[out_.shape_of[id]];
  auto at = rooted_.find(id);
  if (at == rooted_.end()) {
    at = rooted_.emplace(id, RootedCall(shape, call.collective, absent_[call.communicator])).first;
  }
  RootedCall& rooted = at->second;
  const uint32_t member = member_of(r, id);
  rooted.arrive(member);
  const RootedCall::Hops hops = rooted.take_startable();
  const Nanos start = now() + shape.latency;
  if (rooted.is_everything(hops) && !options_.messages) {
    fabric_.timer(start, tag_of(Tag::kWhole, 0, id));
  } else {
    for (uint32_t hop : hops) fabric_.timer(start, tag_of(Tag::kHop, hop, id));
  }
  // All was there before this member: it only has to take it out of its buffer.
  if (rooted.may_leave(member)) fabric_.timer(start, tag_of(Tag::kLateMember, member, id));
}

uint32_t Evaluator::member_of(size_t r, uint32_t id) const {
  return static_cast<uint32_t>(
      std::max(0, member_index(program_.communicators[out_.meetings[id].communicator],
                               program_.ranks[r].rank)));
}

void Evaluator::start_hop(uint32_t id, uint32_t part, uint64_t tag) {
  if (out_.meetings[id].halted) return;
  const DeclaredShape& shape = shapes_[out_.shape_of[id]];
  if (shape.plan.per_hop > 0) return messages_.open_hop(id, shape.plan, part, fabric_);
  fabric_.start(shape.hops[part].route, shape.hops[part].bytes, tag);
}

void Evaluator::hop_ended(uint32_t id, uint32_t hop) {
  // Gone when only members that the program does not hold were left.
  const auto at = rooted_.find(id);
  if (at == rooted_.end()) return;
  at->second.hop_ended(hop);
  leave_those_who_may(id);
}

void Evaluator::message_ended(uint32_t id, uint32_t m) {
  const DeclaredPlan& plan = shapes_[out_.shape_of[id]].plan;
  const bool all = messages_.ended(id, plan, m, fabric_);
  if (plan.per_hop == 0 && all) whole_ended(id);
  if (plan.per_hop > 0 && (m + 1) % plan.per_hop == 0) hop_ended(id, m / plan.per_hop);
}

void Evaluator::start_whole(uint32_t id) {
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

void Evaluator::whole_ended(uint32_t id) {
  if (const auto at = rooted_.find(id); at != rooted_.end()) {
    at->second.all_hops_ended();
    return leave_those_who_may(id);
  }
  for (uint32_t i = out_.calls_begin[id]; i < out_.calls_begin[id + 1]; ++i) {
    leave(out_.calls_of[i], id, now());
    queue(out_.calls_of[i].rank);
  }
}

void Evaluator::leave_those_who_may(uint32_t id) {
  for (uint32_t i = out_.calls_begin[id]; i < out_.calls_begin[id + 1]; ++i) {
    const auto at = rooted_.find(id);
    if (at == rooted_.end()) return;  // the last has gone
    const MeetingCall call = out_.calls_of[i];
    if (!at->second.may_leave(member_of(call.rank, id))) continue;
    leave(call, id, now());
    queue(call.rank);
  }
}

void Evaluator::leave(MeetingCall who, uint32_t id, Nanos at) {
  const size_t r = who.rank;
  const OpId op = who.op;
  if (out_.arrival[r][who.call] < 0 || out_.end[r][op] >= 0 || lanes_[r].stopped()) return;
  RankState& state = states_[r];
  const uint32_t lane = lanes_[r].leave(op, at);
  --state.calls_left;
  --state.open;
  const uint32_t communicator = out_.meetings[id].communicator;
  state.in.erase(std::find(state.in.begin(), state.in.end(), communicator));
  if (lanes_[r].on_gpu(lane) && --state.resident == 0 && state.rated) {
    lanes_[r].set_rate(at, {lanes_[r].rate().speed, false});
  }
  if (++out_.meetings[id].left == out_.meetings[id].expected) end_meeting(id, at);
}

void Evaluator::end_meeting(uint32_t id, Nanos at) {
  Meeting& meeting = out_.meetings[id];
  meeting.end = at;
  rooted_.erase(id);
  Replayed::Shape& shape = out_.shapes[out_.shape_of[id]];
  ++shape.calls;
  shape.time += meeting.end - meeting.last_arrival;
  furthest_ = std::max(furthest_, at);
  if (++meetings_done_ % 256 == 0) {
    reporter_.progress("collectives, " + format_duration(furthest_) + " simulated", meetings_done_,
                       out_.meetings.size());
  }
}

}  // namespace rehearse::sim
