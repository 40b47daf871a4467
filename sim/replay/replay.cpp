// SPDX-License-Identifier: Apache-2.0
#include "sim/replay/replay.hpp"

#include <algorithm>

#include "sim/replay/contention.hpp"
#include "sim/replay/evaluator.hpp"
#include "sim/replay/link_users.hpp"
#include "sim/replay/meetings.hpp"

namespace rehearse::sim {

Result<Replayed> Evaluator::run() {
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

void Evaluator::set_up() {
  const size_t ranks = program_.ranks.size();
  for (uint32_t c = 0; c < program_.communicators.size(); ++c) {
    absent_.push_back(absent_members(program_, c));
  }
  out_.end.reserve(ranks);
  out_.arrival.resize(ranks);
  states_.resize(ranks);
  lanes_.reserve(ranks);
  for (size_t r = 0; r < ranks; ++r) {
    const traces::RankProgram& rank = program_.ranks[r];
    out_.end.emplace_back(rank);
    out_.arrival[r].assign(rank.calls.size(), -1);
    states_[r].calls_left = rank.calls.size();
    const double beside = rate_beside_calls(rank, out_.meeting_of[r], out_.shape_of, shapes_);
    states_[r].rated = beside < 1 || options_.director != nullptr;
    lanes_.emplace_back(rank, out_.end[r], states_[r].rated, beside, transfers_.stops(r));
  }
}

Nanos Evaluator::shortest_latency() const {
  Nanos shortest = shapes_.empty() ? 0 : shapes_.front().latency;
  for (const DeclaredShape& shape : shapes_) shortest = std::min(shortest, shape.latency);
  const Nanos transfer = transfers_.shortest_latency();
  if (transfer >= 0 && (shapes_.empty() || transfer < shortest)) shortest = transfer;
  return std::max<Nanos>(0, shortest);
}

void Evaluator::on_pause() {
  if (!look(now())) return fabric_.stop();
  watch_next();
}

bool Evaluator::watched_enough() const {
  return ended_by_watch_ || options_.watch == nullptr || looks_ == options_.watch->times.size();
}

void Evaluator::watch_next() {
  if (!watched_enough()) fabric_.pause_at(options_.watch->times[looks_]);
}

bool Evaluator::look(Nanos when) {
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

bool Evaluator::finish() {
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

Result<Replayed> replay(const traces::Program& program, const ReplayOptions& options,
                        Fabric& fabric, Reporter& reporter) {
  return Evaluator(program, options, fabric, reporter).run();
}

}  // namespace rehearse::sim
