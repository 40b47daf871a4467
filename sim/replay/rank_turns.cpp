// SPDX-License-Identifier: Apache-2.0
// Ranks run ahead of the clock as far as nothing that happens elsewhere can change what they do.
#include <algorithm>

#include "sim/replay/evaluator.hpp"

namespace rehearse::sim {

void Evaluator::queue(size_t r) {
  if (states_[r].queued) return;
  states_[r].queued = true;
  queue_.push_back(r);
  fetch(r);
}

void Evaluator::settle_queued() {
  for (size_t i = 0; i < queue_.size(); ++i) {
    if ((++settled_ & 0xfff) == 0 && reporter_.interrupted()) {
      fabric_.stop();
      break;
    }
    if (i + 1 < queue_.size()) lanes_[queue_[i + 1]].fetch();
    states_[queue_[i]].queued = false;
    settle(queue_[i]);
  }
  queue_.clear();
}

void Evaluator::settle(size_t r) {
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

bool Evaluator::look_ahead(size_t r) {
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

bool Evaluator::leave_known(size_t r) {
  auto& known = states_[r].known;
  const auto first = std::min_element(
      known.begin(), known.end(), [](const KnownEnd& a, const KnownEnd& b) { return a.at < b.at; });
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

bool Evaluator::enter_one(size_t r) {
  RankState& state = states_[r];
  for (const RankLanes::AtCall& found : lanes_[r].at_call()) {
    const RankLanes::AtCall at = found;
    if (at.when > kEndOfTime || (state.rated && at.when > present(r))) continue;
    if (at.when > now() && !all_together(r, at)) continue;
    lanes_[r].enter(at);
    state.open += at.past - at.first;
    if (lanes_[r].call_of(at.first) == traces::kNoCall) {
      transfers_.arrive(r, at.first, at.when, fabric_);
      return true;
    }
    if (lanes_[r].on_gpu(at.lane)) {
      state.resident += at.past - at.first;
      if (state.rated) lanes_[r].set_rate(present(r), {lanes_[r].rate().speed, true});
    }
    for (OpId op = at.first; op < at.past; ++op) arrive(r, op, at.when);
    return true;
  }
  return false;
}

bool Evaluator::all_together(size_t r, const RankLanes::AtCall& at) const {
  if (lanes_[r].call_of(at.first) == traces::kNoCall) return false;  // a transfer
  for (OpId op = at.first; op < at.past; ++op) {
    const uint32_t id = out_.meeting_of[r][lanes_[r].call_of(op)];
    if (!shapes_[out_.shape_of[id]].hops.empty()) return false;
  }
  return true;
}

void Evaluator::fetch(size_t r) const {
  __builtin_prefetch(&states_[r]);
  constexpr size_t kLine = 64;
  for (size_t at = 0; at < sizeof(RankLanes); at += kLine) {
    __builtin_prefetch(reinterpret_cast<const char*>(&lanes_[r]) + at);
  }
}

}  // namespace rehearse::sim
