// SPDX-License-Identifier: Apache-2.0
// A replay while it goes on (replay.hpp): what each rank, each call and the fabric do to one another. One class, because all
// of them look at the same few tables; one source per question:
//   replay.cpp       a run from its beginning to its end, and who looks at it on the way
//   rank_turns.cpp   how far a rank goes by itself, and when it is woken
//   call_turns.cpp   a call from its first arriver to its last leaver
//   events.cpp       what the fabric tells, and whose business it is
//   stage.cpp        what a director may do
// Internal to sim/replay. Everything happens in the order of the fabric's events.
#pragma once

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "sim/replay/message_runs.hpp"
#include "sim/replay/private_calls.hpp"
#include "sim/replay/rank_lanes.hpp"
#include "sim/replay/rank_state.hpp"
#include "sim/replay/replay.hpp"
#include "sim/replay/rooted.hpp"
#include "sim/replay/shapes.hpp"
#include "sim/replay/tags.hpp"
#include "sim/replay/transfers.hpp"

namespace rehearse::sim {

class Evaluator final : public FabricListener, public Stage {
 public:
  Evaluator(const traces::Program& program, const ReplayOptions& options, Fabric& fabric,
            Reporter& reporter)
      : program_(program), options_(options), fabric_(fabric), reporter_(reporter) {}

  Result<Replayed> run();

  // Stage.
  [[nodiscard]] Nanos now() const override { return fabric_.now(); }
  void timer(Nanos when, uint64_t tag) override;
  bool set_capacity(LinkId link, BytesPerSec capacity) override;
  void start_flow(RouteId route, double bytes, uint64_t tag) override;
  void set_gpu_speed(size_t r, double speed) override;
  void stop_rank(size_t r) override;
  [[nodiscard]] Nanos crossing_since(LinkId link) const override;
  [[nodiscard]] bool idle() const override;

 private:
  void set_up();
  // No flow starts sooner after a rank has come to a call.
  [[nodiscard]] Nanos shortest_latency() const;
  // False: something would end after the end of time.
  bool finish();

  [[nodiscard]] bool watched_enough() const;
  void watch_next();
  // False: the run is to end.
  bool look(Nanos when);
  void on_pause() override;

  // A rank's own time: up to it, nothing that happens elsewhere can change what the rank does.
  [[nodiscard]] Nanos present(size_t r) const { return std::max(now(), states_[r].present); }
  // The rank may be able to go on.
  void queue(size_t r);
  void settle_queued();
  // Advances a rank as far as it goes by itself, and asks to be woken when it can go further.
  void settle(size_t r);
  // The rate of a rank's kernels changes only when it enters or leaves a call (or when a director says so). While it
  // is in none whose end is not known, its own time may go on to the next thing that it waits for, without the
  // fabric's clock.
  bool look_ahead(size_t r);
  // Leaves the first call whose end is known and has come.
  bool leave_known(size_t r);
  // Enters the first call whose time has come. Members of a call that nobody can leave before all
  // are there may be counted ahead of time, as long as nothing can change when they come.
  bool enter_one(size_t r);
  [[nodiscard]] bool all_together(size_t r, const RankLanes::AtCall& at) const;
  // Asks the processor for what a rank is looked at with first.
  void fetch(size_t r) const;

  void arrive(size_t r, OpId op, Nanos when);
  // Is a member of the call in one that may be on its links?
  [[nodiscard]] bool crowded(uint32_t id) const;
  // A rank enters a call: those it is in whose end was known may no longer be alone on their links.
  void join(size_t r, uint32_t communicator, Nanos when);
  // The end is not known after all: the fabric will tell. Not where a member has left by then: it is in no other call
  // on these links, so nothing is on them.
  void share_again(const KnownEnd& end);
  void arrive_rooted(size_t r, uint32_t id, const traces::Call& call);
  [[nodiscard]] uint32_t member_of(size_t r, uint32_t id) const;
  void start_hop(uint32_t id, uint32_t part, uint64_t tag);
  void hop_ended(uint32_t id, uint32_t hop);
  void message_ended(uint32_t id, uint32_t m);
  void start_whole(uint32_t id);
  void whole_ended(uint32_t id);
  void leave_those_who_may(uint32_t id);
  void leave(MeetingCall who, uint32_t id, Nanos at);
  void end_meeting(uint32_t id, Nanos at);

  void on_timer(uint64_t tag) override;
  void timer_fired(uint64_t tag);
  void on_flow_end(uint64_t tag) override;
  void flow_ended(uint64_t tag);
  void end_transfer(uint64_t tag);
  void on_soon(uint64_t tag, Soon how) const override;

  const traces::Program& program_;
  const ReplayOptions& options_;
  Fabric& fabric_;
  Reporter& reporter_;
  std::vector<RankLanes> lanes_;
  std::vector<DeclaredShape> shapes_;
  std::vector<std::vector<uint32_t>> sharers_;  // by communicator (private_calls.hpp)
  std::vector<std::vector<bool>> absent_;       // by communicator and member
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
  size_t ranks_ended_ = 0;
  size_t looks_ = 0;  // of the watch, taken
  bool ended_by_watch_ = false;
};

}  // namespace rehearse::sim
