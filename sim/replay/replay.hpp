// SPDX-License-Identifier: Apache-2.0
// The timeline evaluator: replays a program on a fabric. Operations of fixed duration need no
// simulator: a lane is advanced eagerly until it reaches something shared (a call) or an operation
// that has not ended yet. Calls meet by (communicator, sequence), send and recv by (communicator,
// pair, sequence); when the last member that has to come has come, the call's flows go to the
// fabric, and at their end every member goes on. Lanes may be ahead of the fabric's clock, never
// behind what they depend on.
//
// Cost: O(operations + edges) for lanes plus the fabric's own events, which do not grow with steps
// of a ring. Deterministic: lanes are advanced in order of (rank, lane), events in order of (time,
// call).
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/finding.hpp"
#include "base/reporter.hpp"
#include "sim/fabric/fabric.hpp"
#include "sim/nccl/traffic.hpp"
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
  uint32_t last_arriver = UINT32_MAX;    // position in Program::ranks
  OpId last_op = 0;                      // its operation
  uint32_t second_arriver = UINT32_MAX;  // send and recv: the other one
  Nanos first_arrival = 0;
  Nanos last_arrival = 0;
  Nanos end = -1;  // -1: never ended
  uint32_t flows_left = 0;
  bool mismatch = false;  // members disagree about type or size: it can never end
};

// What the replay leaves behind.
struct Replayed {
  // By position in Program::ranks and OpId. -1: never.
  std::vector<std::vector<Nanos>> end;
  // By position and index into RankProgram::calls: when this rank arrived, -1: never; and its
  // meeting.
  std::vector<std::vector<Nanos>> arrival;
  std::vector<std::vector<uint32_t>> meeting_of;
  std::vector<Meeting> meetings;
  bool completed = false;
  Nanos end_time = 0;              // of the last thing that happened
  std::vector<double> link_bytes;  // by LinkId
  Fabric::Counters counters;
  uint64_t lane_visits = 0;  // how often a lane was looked at; for tests of growth

  // Traffic of each distinct call shape seen, for reports.
  struct Shape {
    uint32_t communicator = 0;
    std::string algorithm;
    uint64_t calls = 0;
    double bytes = 0;  // payload
    double bus_bytes = 0;
    Nanos time = 0;  // in transfer, summed
    LinkId bottleneck = platforms::kNoLink;
  };
  std::vector<Shape> shapes;
  std::vector<uint32_t> shape_of;  // by meeting
};

// Traffic of a call as its sender (send) or any member (collectives) sees it; see
// CommunicatorModel.
using TrafficOf = std::function<Result<CallTraffic>(const traces::Call& call, uint32_t member)>;

// The fabric must be fresh; routes are declared here. `capacity` by LinkId, for naming bottlenecks.
[[nodiscard]] Result<Replayed> replay(const traces::Program& program, const TrafficOf& traffic,
                                      std::span<const BytesPerSec> capacity, Fabric& fabric,
                                      Reporter& reporter);

}  // namespace rehearse::sim
