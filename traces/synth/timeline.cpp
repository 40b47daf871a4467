// SPDX-License-Identifier: Apache-2.0
#include "traces/synth/timeline.hpp"

#include <algorithm>

namespace rehearse::synth {

using traces::Collective;

namespace {

// Sink of the joint run: only clocks matter.
struct Forget {
  static constexpr bool kRecords = false;
  void begin_step(uint32_t, Nanos) {}
  void end_step(Nanos) {}
  void memory(const Instruction&, Nanos) {}
  void launch(const Instruction&, Nanos, Nanos) {}
  void host(const Instruction&, Nanos, Nanos) {}
  void work(const Instruction&, Nanos, Nanos) {}
  void event(const Instruction&, Nanos, Nanos) {}
  void begin(const Instruction&, Nanos) {}
  void end(const Instruction&, Nanos) {}
  void call(const Instruction&, const Place&, Nanos, Nanos) {}
};

uint32_t communicator_of(const Layout& layout, const Place& place) {
  return static_cast<uint32_t>(layout.communicator(place.rank, place.spec->group));
}

}  // namespace

size_t Timeline::channel(const Place& place) const {
  const auto stages = layout_->size(place.rank, Group::kPipeline);
  const uint32_t here = layout_->at(place.rank).pp;
  const auto there = static_cast<uint32_t>(place.spec->peer);
  const bool sends = place.spec->collective == Collective::kSend;
  const uint32_t from = sends ? here : there;
  const uint32_t to = sends ? there : here;
  auto at = layout_->at(place.rank);
  at.pp = from;
  return 2 * size_t{layout_->rank(at)} + ((from + 1) % stages == to ? 0 : 1);
}

std::optional<Nanos> Timeline::end(const Place& place) const {
  const auto& known = traces::is_point_to_point(place.spec->collective)
                          ? messages_[channel(place)]
                          : ends_[communicator_of(*layout_, place)];
  const auto i = static_cast<size_t>(place.sequence);
  if (i >= known.size()) return std::nullopt;
  return known[i];
}

// Collects arrivals and wakes who waited for them.
class JointBoard {
 public:
  JointBoard(Timeline& timeline, const Layout& layout) : timeline_(timeline), layout_(layout) {
    timeline_.ends_.resize(layout.communicators().size());
    timeline_.messages_.resize(2 * size_t{layout.ranks()});
    arrivals_.resize(layout.communicators().size());
    sides_.resize(2 * size_t{layout.ranks()});
    for (RankId r = layout.ranks(); r-- > 0;) runnable_.push_back(r);
  }

  void post(const Place& place, Nanos ready) {
    traces::is_point_to_point(place.spec->collective) ? post_message(place, ready)
                                                      : post_collective(place, ready);
  }
  [[nodiscard]] std::optional<Nanos> end(const Place& place) const { return timeline_.end(place); }

  [[nodiscard]] std::vector<RankId>& runnable() { return runnable_; }

 private:
  void post_collective(const Place& place, Nanos ready) {
    const uint32_t c = communicator_of(layout_, place);
    Arrivals& a = arrivals_[c];
    a.latest = std::max(a.latest, ready);
    const auto& members = layout_.communicators()[c].members;
    if (++a.count < members.size()) return;
    const Nanos transfer = layout_.spans_nodes(c) ? place.spec->remote : place.spec->local;
    timeline_.ends_[c].push_back(a.latest + transfer);
    a = {};
    for (RankId r : members)
      if (r != place.rank) runnable_.push_back(r);
  }

  void post_message(const Place& place, Nanos ready) {
    const size_t channel = timeline_.channel(place);
    Sides& s = sides_[channel];
    (place.spec->collective == Collective::kSend ? s.sent : s.received).push_back(ready);
    auto& ends = timeline_.messages_[channel];
    const size_t i = ends.size();
    if (i >= s.sent.size() || i >= s.received.size()) return;
    auto peer = layout_.at(place.rank);
    peer.pp = static_cast<uint32_t>(place.spec->peer);
    const RankId other = layout_.rank(peer);
    const bool remote = layout_.node(other) != layout_.node(place.rank);
    const Nanos before = ends.empty() ? 0 : ends.back();
    ends.push_back(std::max({s.sent[i], s.received[i], before}) +
                   (remote ? place.spec->remote : place.spec->local));
    runnable_.push_back(other);
  }

  struct Arrivals {
    size_t count = 0;
    Nanos latest = 0;
  };
  struct Sides {
    std::vector<Nanos> sent, received;
  };
  Timeline& timeline_;
  const Layout& layout_;
  std::vector<Arrivals> arrivals_;
  std::vector<Sides> sides_;
  std::vector<RankId> runnable_;
};

Result<Timeline> Timeline::create(const Layout& layout, const pb::Synth& options,
                                  const std::vector<Script>& scripts,
                                  const std::vector<uint32_t>& script_of) {
  Timeline timeline(layout);
  JointBoard board(timeline, layout);
  std::vector<Player<JointBoard, Forget>> players;
  players.reserve(layout.ranks());
  for (RankId r = 0; r < layout.ranks(); ++r)
    players.emplace_back(scripts[script_of[r]], options, r);
  Forget forget;
  std::vector<bool> done(layout.ranks(), false);
  size_t left = layout.ranks();
  auto& runnable = board.runnable();
  while (!runnable.empty()) {
    const RankId r = runnable.back();
    runnable.pop_back();
    if (done[r] || players[r].play(board, forget) == Played::kBlocked) continue;
    done[r] = true;
    --left;
  }
  if (left > 0)
    return fail(Code::kInternal, "the generated schedule waits for itself", options.model(),
                "report this together with the options");
  return timeline;
}

}  // namespace rehearse::synth
