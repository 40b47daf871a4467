// SPDX-License-Identifier: Apache-2.0
// The timeline evaluator: replays a program on a fabric. Operations of fixed duration need no
// simulator: the lanes of a rank are evaluated among themselves (rank_lanes.hpp) until they reach
// something shared: a call, or a transfer (transfers.hpp). Calls meet by (communicator, sequence), send and recv by (communicator,
// pair, sequence).
//
// Who may leave when:
//   all-reduce, all-gather, reduce-scatter, all-to-all, barrier   all at the end of the flows,
//       which start when the last member has come
//   broadcast, reduce, gather, scatter, send, recv   each for itself (rooted.hpp): a sender may be
//       ahead of its receiver by what NCCL's connection buffers hold
//
// Kernels beside a resident collective are slowed (docs/engine.md): from a rank's arrival at a call
// until it leaves, its rated lanes go at a lower rate.
//
// Cost: O(operations + edges) for lanes plus the fabric's own events, which do not grow with steps
// of a ring. Deterministic: lanes are advanced in order of (rank, lane), events in order of (time,
// order of being set).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/finding.hpp"
#include "base/reporter.hpp"
#include "sim/fabric/fabric.hpp"
#include "sim/nccl/messages.hpp"
#include "sim/nccl/traffic.hpp"
#include "sim/replay/director.hpp"
#include "sim/replay/op_times.hpp"
#include "sim/replay/watch.hpp"
#include "traces/program/program.hpp"

namespace rehearse::sim {

using traces::OpId;

// One call of all its members together.
struct Meeting {
  uint32_t communicator = 0;
  int64_t sequence = 0;
  traces::Call call;                    // as its first arriver made it
  uint32_t first_arriver = UINT32_MAX;  // position in Program::ranks
  uint32_t expected = 0;                // members that are part of the program
  uint32_t arrived = 0;
  uint32_t last_arriver = UINT32_MAX;  // position in Program::ranks
  OpId last_op = 0;                    // its operation
  Nanos first_arrival = 0;
  Nanos last_arrival = 0;
  Nanos end = -1;  // -1: never ended
  uint32_t flows_left = 0;
  uint32_t left = 0;      // members that have gone on
  bool mismatch = false;  // members disagree in a way that it can never end (agreement.hpp)
  bool corrupt = false;   // members disagree and it ends all the same, with wrong numbers
  bool halted = false;    // a member stopped in the middle of it
};

// A call of a rank: positions in Program::ranks and RankProgram::calls, and its operation.
struct MeetingCall {
  uint32_t rank = 0;
  uint32_t call = 0;
  OpId op = 0;
};

// What the replay leaves behind.
struct Replayed {
  // By position in Program::ranks and OpId. -1: never.
  std::vector<OpTimes> end;
  // By position and index into RankProgram::calls: when this rank arrived, -1: never; and its
  // meeting.
  std::vector<std::vector<Nanos>> arrival;
  std::vector<std::vector<uint32_t>> meeting_of;
  std::vector<Meeting> meetings;
  // The calls of meeting m are calls_of[calls_begin[m] .. calls_begin[m + 1]), by rank.
  std::vector<uint32_t> calls_begin;
  std::vector<MeetingCall> calls_of;
  // By position and index into RankProgram::transfers: when its bytes began to move; -1: never, or it
  // took its recorded time.
  std::vector<std::vector<Nanos>> transfer_begin;
  bool completed = false;
  Nanos end_time = 0;              // of the last thing that happened
  std::vector<double> link_bytes;  // by LinkId
  Fabric::Counters counters;
  // For tests of growth: how often a lane was looked at, timers handled.
  uint64_t lane_visits = 0;
  uint64_t events = 0;

  // Traffic of each distinct call shape seen, for reports.
  struct Shape {
    uint32_t communicator = 0;
    traces::Call call;    // as its sender or any member makes it
    uint32_t member = 0;  // the sender, for point to point
    int channels = 0;
    std::string algorithm;
    uint64_t calls = 0;
    double bytes = 0;  // payload
    double bus_bytes = 0;
    Nanos time = 0;  // in transfer, summed
    LinkId bottleneck = platforms::kNoLink;
    // Ranks that plan it otherwise than the first member (CallTraffic::dissent): it never ends.
    std::string dissent;
    std::vector<uint32_t> dissenters;
  };
  std::vector<Shape> shapes;
  std::vector<uint32_t> shape_of;  // by meeting
};

// Traffic of a call as its sender (send) or any member (collectives) sees it; see
// CommunicatorModel.
using TrafficOf = std::function<Result<CallTraffic>(const traces::Call& call, uint32_t member)>;

// What of a GPU collectives and kernels contend for; 0: unknown, no contention.
struct GpuShare {
  uint32_t sms = 0;
  BytesPerSec memory_bandwidth = 0;
  double beside = 0;  // time of kernels beside a call over alone, where the platform states it
};

// The same call as its messages.
using MessagesOf = std::function<Result<MessagePlan>(const traces::Call& call, uint32_t member)>;

// A transfer of the rank at a position in Program::ranks; nullopt: it takes its recorded time.
using TransferOf = std::function<Result<std::optional<CallTraffic>>(
    size_t rank, const traces::Transfer& transfer)>;

struct ReplayOptions {
  TrafficOf traffic;
  TransferOf transfer;                    // unset: all take their recorded time
  MessagesOf messages;                    // set: every message is a flow (fidelity step)
  std::span<const BytesPerSec> capacity;  // by LinkId, for naming bottlenecks
  // Calls whose data moves in no time, for "what if"; members still meet and hold their channels.
  std::function<bool(const traces::Call& call)> instant;
  // By position in Program::ranks; empty: collectives do not slow kernels.
  std::vector<GpuShare> gpus;
  Director* director = nullptr;
  const Watch* watch = nullptr;  // looks at it on the way
};

// The fabric must be fresh; routes are declared here. A run that its watch ends is returned as it stood then.
[[nodiscard]] Result<Replayed> replay(const traces::Program& program, const ReplayOptions& options,
                                      Fabric& fabric, Reporter& reporter);

}  // namespace rehearse::sim
