// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/small_trace.hpp"

#include <algorithm>

namespace rehearse::tests {
namespace {

using namespace rehearse::traces;

constexpr Nanos kLaunch = 5000;
enum LaneIndex : LaneId { kHostLane, kComputeLane, kCommLane };

int32_t index_of(const std::vector<uint32_t>& members, uint32_t rank) {
  return static_cast<int32_t>(std::find(members.begin(), members.end(), rank) - members.begin());
}

}  // namespace

SmallTrace::SmallTrace(uint32_t ranks) : clock_(ranks) {
  trace_.header.set_world_size(ranks);
  trace_.header.set_synthetic(true);
  for (uint32_t r = 0; r < ranks; ++r) {
    RankTrace rank;
    rank.rank = r;
    rank.lanes = {
        {LaneKind::kHostThread, 1, 0}, {LaneKind::kStream, 7, 0}, {LaneKind::kStream, 20, 0}};
    trace_.ranks.push_back(std::move(rank));
  }
}

void SmallTrace::kernel(uint32_t rank, Nanos duration, const char* name) {
  Clock& clock = clock_[rank];
  Operations& ops = trace_.ranks[rank].ops;
  ++correlation_;
  ops.add(OpKind::kLaunch, kHostLane, trace_.strings.intern("cudaLaunchKernel"), clock.host,
          kLaunch, correlation_);
  clock.host += kLaunch;
  const Nanos start = std::max(clock.host, clock.compute);
  ops.add(OpKind::kKernel, kComputeLane, trace_.strings.intern(name), start, duration,
          correlation_);
  clock.compute = start + duration;
}

void SmallTrace::copy(uint32_t rank, CopyDirection direction, Bytes bytes, Nanos duration,
                      const char* name) {
  Clock& clock = clock_[rank];
  Operations& ops = trace_.ranks[rank].ops;
  ++correlation_;
  ops.add(OpKind::kLaunch, kHostLane, trace_.strings.intern("cudaMemcpyAsync"), clock.host, kLaunch,
          correlation_);
  clock.host += kLaunch;
  const Nanos start = std::max(clock.host, clock.compute);
  ops.add_copy(kComputeLane, trace_.strings.intern(name), start, duration, correlation_,
               {direction, bytes});
  clock.compute = start + duration;
}

void SmallTrace::sync(uint32_t rank, SyncKind kind, int stream, uint64_t event) {
  trace_.ranks[rank].ops.add_sync(kHostLane, trace_.strings.intern("cudaEvent"), clock_[rank].host,
                                  0, 0, {kind, stream, event});
}

void SmallTrace::enqueue_call(uint32_t rank, const Call& call) {
  Clock& clock = clock_[rank];
  const uint64_t before = ++event_, after = ++event_;
  sync(rank, SyncKind::kRecord, kComputeLane, before);
  sync(rank, SyncKind::kWaitEvent, kCommLane, before);
  ++correlation_;
  Operations& ops = trace_.ranks[rank].ops;
  ops.add(OpKind::kLaunch, kHostLane, trace_.strings.intern("cudaLaunchKernel"), clock.host,
          kLaunch, correlation_);
  clock.host += kLaunch;
  const Nanos start = std::max({clock.host, clock.compute, clock.comm});
  ops.add_call(kCommLane, trace_.strings.intern("ncclDevKernel"), start, 1000, correlation_, call);
  clock.comm = start + 1000;
  sync(rank, SyncKind::kRecord, kCommLane, after);
  sync(rank, SyncKind::kWaitEvent, kComputeLane, after);
  clock.compute = std::max(clock.compute, clock.comm);
}

uint32_t SmallTrace::communicator(const std::vector<uint32_t>& members) {
  const auto [at, fresh] =
      communicators_.emplace(members, static_cast<uint32_t>(trace_.communicators.size()));
  if (fresh) {
    trace_.communicators.push_back({"c" + std::to_string(at->second), "test", members, "nccl"});
  }
  return at->second;
}

void SmallTrace::call(uint32_t rank, const std::vector<uint32_t>& members, Collective collective,
                      Bytes bytes) {
  Call call;
  call.communicator = communicator(members);
  call.sequence = sequence_[{rank, call.communicator, -1, -1}]++;
  call.collective = collective;
  call.bytes_in = call.bytes_out = bytes;
  call.dtype = DType::kFp32;
  enqueue_call(rank, call);
}

void SmallTrace::all_reduce(const std::vector<uint32_t>& callers, Bytes bytes,
                            std::vector<uint32_t> members) {
  if (members.empty()) members = callers;
  for (uint32_t rank : callers) call(rank, members, Collective::kAllReduce, bytes);
}

void SmallTrace::send(uint32_t from, uint32_t to, Bytes bytes) {
  const std::vector<uint32_t> members = {std::min(from, to), std::max(from, to)};
  Call call;
  call.communicator = communicator(members);
  call.bytes_in = call.bytes_out = bytes;
  call.dtype = DType::kFp32;
  call.group = group_;
  call.collective = Collective::kSend;
  call.peer = index_of(members, to);
  call.sequence = sequence_[{from, call.communicator, call.peer, 0}]++;
  enqueue_call(from, call);
  call.collective = Collective::kRecv;
  call.peer = index_of(members, from);
  call.sequence = sequence_[{to, call.communicator, call.peer, 1}]++;
  enqueue_call(to, call);
}

void SmallTrace::exchange(uint32_t a, uint32_t b, Bytes bytes) {
  ++event_;
  group_ = event_;
  send(a, b, bytes);
  send(b, a, bytes);
  group_ = 0;
}

void SmallTrace::end_step() {
  for (uint32_t r = 0; r < clock_.size(); ++r) {
    Clock& clock = clock_[r];
    auto& steps = trace_.ranks[r].steps;
    steps.push_back({static_cast<int64_t>(steps.size()), clock.step, clock.host});
    clock.step = clock.host;
  }
}

const Trace& SmallTrace::trace() {
  for (RankTrace& rank : trace_.ranks) rank.ops.sort();
  return trace_;
}

}  // namespace rehearse::tests
