// SPDX-License-Identifier: Apache-2.0
// Plays a Script for one rank: advances the clocks of its lanes instruction by instruction and
// tells a Sink what happened when. When a collective or message ends is asked of a Board; where the
// Board does not know yet, play() returns kBlocked and is called again later. All times follow from
// (script, seed, rank, ends on the Board), so playing twice gives the same times.
//
//   start on a stream = max(end of its last operation, events it waits for, launch + latency)
//   jitter            duration * (1 + jitter * z); z is the sum of four uniforms scaled to
//   deviation 1
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/random.hpp"
#include "traces/synth/costs.hpp"
#include "traces/synth/script.hpp"

namespace rehearse::synth {

enum class Played : uint8_t { kBlocked, kDone };

// Where a call of this rank is on the Board.
struct Place {
  RankId rank = 0;
  const CallSpec* spec = nullptr;
  int64_t sequence = 0;  // among the calls of this rank on that communicator (or to that peer)
};

// Board: void post(const Place&, Nanos ready);
//        std::optional<Nanos> end(const Place&);  // when the call is over, if known
// Sink:  see Recorder (recorder.hpp).
template <typename Board, typename Sink>
class Player {
 public:
  Player(const Script& script, const pb::Synth& options, RankId rank)
      : script_(&script),
        rank_(rank),
        steps_(options.steps()),
        jitter_(options.jitter()),
        random_(options.seed(), "synth-jitter", rank),
        lanes_(script.lanes.size()),
        events_(script.events, 0) {
    // Ranks do not start their first step together.
    const auto skew = static_cast<Nanos>(jitter_ > 0 ? random_.below(100'000) : 0);
    for (size_t i = 0; i < lanes_.size(); ++i) lanes_[i].clock = skew;
  }

  [[nodiscard]] RankId rank() const { return rank_; }

  Played play(Board& board, Sink& sink) {
    if (!prepared_) {
      for (const Instruction& i : script_->once) sink.memory(i, lanes_[i.lane].clock);
      prepared_ = true;
    }
    for (; step_ < steps_; ++step_, next_ = 0) {
      if (next_ == 0 && !posted_) sink.begin_step(step_, lanes_[0].clock);
      for (; next_ < script_->step.size(); ++next_)
        if (!execute(script_->step[next_], board, sink)) return Played::kBlocked;
      sink.end_step(lanes_[0].clock);
    }
    return Played::kDone;
  }

 private:
  struct LaneState {
    Nanos clock = 0;    // end of the last operation
    Nanos floor = 0;    // latest event waited for
    int64_t calls = 0;  // point-to-point: messages so far
    const CallSpec* last = nullptr;
  };

  Nanos jittered(Nanos duration) {
    if (jitter_ == 0 || duration == 0) return duration;
    const uint64_t bits = random_.next();
    const auto sum = static_cast<double>((bits & 0xffff) + (bits >> 16 & 0xffff) +
                                         (bits >> 32 & 0xffff) + (bits >> 48));
    constexpr double kMean = 2.0 * 65535.0;
    constexpr double kDeviation = 65536.0 * 0.57735026918962576;  // sqrt(4 / 12)
    const double factor = std::max(0.1, 1.0 + jitter_ * (sum - kMean) / kDeviation);
    return std::max<Nanos>(1, static_cast<Nanos>(static_cast<double>(duration) * factor));
  }

  // The launch call on the host; returns when the work may start.
  Nanos launch(const Instruction& i, Sink& sink) {
    LaneState& host = lanes_[i.lane];
    host.clock += jittered(kTimes.dispatch);
    const Nanos duration = jittered(kTimes.launch);
    sink.launch(i, host.clock, duration);
    host.clock += duration;
    return host.clock + kTimes.launch_to_start;
  }

  bool execute(const Instruction& i, Board& board, Sink& sink);
  bool call(const Instruction& i, Board& board, Sink& sink);
  bool await_device(const Instruction& i, Board& board, Sink& sink);

  const Script* script_;
  RankId rank_;
  uint32_t steps_;
  double jitter_;
  Random random_;
  std::vector<LaneState> lanes_;
  std::vector<Nanos> events_;
  int64_t sequence_[kGroups] = {};
  uint32_t step_ = 0;
  size_t next_ = 0;
  bool prepared_ = false;
  bool posted_ = false;  // the call at next_ is on the Board
  Nanos ready_ = 0;
};

template <typename Board, typename Sink>
bool Player<Board, Sink>::execute(const Instruction& i, Board& board, Sink& sink) {
  LaneState& host = lanes_[i.lane];
  LaneState& stream = lanes_[i.stream];
  switch (i.what) {
    case Do::kHost: {
      const Nanos duration = jittered(i.value);
      sink.host(i, host.clock, duration);
      host.clock += duration;
      return true;
    }
    case Do::kKernel:
    case Do::kMemset:
    case Do::kCopy: {
      const Nanos start = std::max({launch(i, sink), stream.clock, stream.floor});
      const Nanos duration = jittered(i.value);
      sink.work(i, start, duration);
      stream.clock = start + duration;
      return true;
    }
    case Do::kCall:
      return call(i, board, sink);
    case Do::kRecord:
    case Do::kWait: {
      const Nanos duration = jittered(i.value);
      sink.event(i, host.clock, duration);
      host.clock += duration;
      if (i.what == Do::kRecord)
        events_[i.index] = std::max(stream.clock, stream.floor);
      else
        stream.floor = std::max(stream.floor, events_[i.index]);
      return true;
    }
    case Do::kAwaitEvent: {
      const Nanos end = std::max(host.clock, events_[i.index]) + jittered(i.value);
      sink.event(i, host.clock, end - host.clock);
      host.clock = end;
      return true;
    }
    case Do::kAwaitDevice:
      return await_device(i, board, sink);
    case Do::kHandOver:
      stream.clock = std::max(stream.clock, host.clock + jittered(i.value));
      return true;
    case Do::kMemory:
      sink.memory(i, host.clock);
      return true;
    case Do::kBegin:
      sink.begin(i, host.clock);
      return true;
    case Do::kEnd:
      sink.end(i, host.clock);
      return true;
  }
  return true;
}

template <typename Board, typename Sink>
bool Player<Board, Sink>::call(const Instruction& i, Board& board, Sink& sink) {
  const CallSpec& spec = script_->calls[i.index];
  LaneState& stream = lanes_[i.stream];
  const bool message = traces::is_point_to_point(spec.collective);
  int64_t& sequence = message ? stream.calls : sequence_[static_cast<size_t>(spec.group)];
  const Place place{rank_, &spec, sequence};
  if (!posted_) {
    // A message's stream carries nothing else, so the Board orders it behind the one before.
    ready_ = std::max(launch(i, sink), stream.floor);
    if (!message) ready_ = std::max(ready_, stream.clock);
    board.post(place, ready_);
    posted_ = true;
  }
  std::optional<Nanos> end;
  if (spec.collective == traces::Collective::kSend && !Sink::kRecords) {
    stream.last = &spec;  // when it ends matters at the next device synchronisation only
  } else {
    end = board.end(place);
    if (!end) return false;
    stream.last = &spec;
    // A message starts behind the one before on its stream.
    const Nanos start = message ? std::max(ready_, stream.clock) : ready_;
    sink.call(i, place, start, *end - start);
    stream.clock = *end;
  }
  ++sequence;
  posted_ = false;
  return true;
}

template <typename Board, typename Sink>
bool Player<Board, Sink>::await_device(const Instruction& i, Board& board, Sink& sink) {
  Nanos idle = 0;
  for (size_t l = 0; l < lanes_.size(); ++l) {
    if (script_->lanes[l].kind != traces::LaneKind::kStream) continue;
    LaneState& lane = lanes_[l];
    if (lane.last && lane.last->collective == traces::Collective::kSend) {
      const auto end = board.end({rank_, lane.last, lane.calls - 1});
      if (!end) return false;
      lane.clock = *end;
    }
    idle = std::max({idle, lane.clock, lane.floor});
  }
  LaneState& host = lanes_[i.lane];
  const Nanos end = std::max(host.clock, idle) + jittered(i.value);
  sink.event(i, host.clock, end - host.clock);
  host.clock = end;
  return true;
}

}  // namespace rehearse::synth
