// SPDX-License-Identifier: Apache-2.0
// Programs that consist of calls only, for tests: every call is alone on a stream of its own and
// starts after a given time, so that calls of one rank overlap.
#pragma once

#include <vector>

#include "traces/program/program.hpp"

namespace rehearse::tests {

class CallProgram {
 public:
  explicit CallProgram(uint32_t ranks) {
    for (uint32_t r = 0; r < ranks; ++r) {
      traces::RankProgram rank;
      rank.rank = r;
      rank.lane_begin = {0};
      rank.edge_begin = {0};
      program_.ranks.push_back(std::move(rank));
    }
  }

  uint32_t communicator(std::vector<uint32_t> members) {
    const auto id = static_cast<uint32_t>(program_.communicators.size());
    program_.communicators.push_back(
        {"c" + std::to_string(id), "test", std::move(members), "nccl"});
    return id;
  }

  // `rank` makes the call at `when`; its stream goes on with nothing.
  void add(uint32_t rank, const traces::Call& call, Nanos when = 0) {
    traces::RankProgram& p = program_.ranks[rank];
    const auto op = static_cast<traces::OpId>(p.kind.size());
    p.lanes.push_back({traces::LaneKind::kStream, static_cast<int64_t>(p.lanes.size()), 0});
    p.kind.push_back(traces::OpKind::kCall);
    p.name.push_back(0);
    p.gap.push_back(when);
    p.duration.push_back(0);
    p.call.push_back(static_cast<uint32_t>(p.calls.size()));
    p.calls.push_back(call);
    p.call_op.push_back(op);
    p.lane_begin.push_back(op + 1);
    p.edge_begin.push_back(0);
  }

  // The next collective on a communicator: all members make it, member m at `when[m]` (missing
  // entries: 0; negative: never).
  void collective(uint32_t communicator, traces::Collective collective, Bytes bytes,
                  const std::vector<Nanos>& when = {}, int32_t root = -1) {
    traces::Call call;
    call.communicator = communicator;
    call.collective = collective;
    call.bytes_in = call.bytes_out = bytes;
    call.dtype = traces::DType::kFp32;
    call.peer = root;
    call.sequence = sequence_++;
    const auto members = program_.communicators[communicator].members;
    if (collective == traces::Collective::kAllGather) {
      call.bytes_in = bytes / static_cast<Bytes>(members.size());
    }
    if (collective == traces::Collective::kReduceScatter) {
      call.bytes_out = bytes / static_cast<Bytes>(members.size());
    }
    for (size_t m = 0; m < members.size(); ++m) {
      const Nanos at = m < when.size() ? when[m] : 0;
      if (at >= 0) add(members[m], call, at);
    }
  }

  // Member 0 of a communicator sends to member 1.
  void send(uint32_t communicator, Bytes bytes, Nanos sender, Nanos receiver) {
    traces::Call call;
    call.communicator = communicator;
    call.bytes_in = call.bytes_out = bytes;
    call.dtype = traces::DType::kFp32;
    call.sequence = sequence_++;
    const auto members = program_.communicators[communicator].members;
    call.collective = traces::Collective::kSend;
    call.peer = 1;
    if (sender >= 0) add(members[0], call, sender);
    call.collective = traces::Collective::kRecv;
    call.peer = 0;
    if (receiver >= 0) add(members[1], call, receiver);
  }

  [[nodiscard]] const traces::Program& program() const { return program_; }
  [[nodiscard]] traces::Program& program() { return program_; }

 private:
  traces::Program program_;
  int64_t sequence_ = 0;
};

}  // namespace rehearse::tests
