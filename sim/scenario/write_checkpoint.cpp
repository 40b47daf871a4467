// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "sim/scenario/rebuild.hpp"
#include "sim/scenario/transform.hpp"
#include "sim/storage_traffic.hpp"

namespace rehearse::sim {
namespace {

using traces::LaneId;
using traces::OpId;
using traces::RankProgram;

// The host thread that does most of the steps: the one that would save.
int main_thread(const RankProgram& rank, uint32_t steps) {
  int found = -1;
  OpId most = 0;
  for (LaneId l = 0; l < rank.lanes.size(); ++l) {
    if (rank.on_gpu(l)) continue;
    const OpId* begin = &rank.step_begin[l * (steps + 1)];
    if (begin[steps] - begin[0] <= most) continue;
    most = begin[steps] - begin[0];
    found = static_cast<int>(l);
  }
  return found;
}

Result<RankProgram> with_writes(const RankProgram& rank, uint32_t steps, uint32_t communicator,
                                const pb::WriteCheckpoint& how) {
  Plan plan = plan_of(rank, steps);
  const int thread = main_thread(rank, steps);
  if (thread < 0) {
    return fail(Code::kBadInput, "no host thread of the rank works in its steps",
                "write-checkpoint: rank " + std::to_string(rank.rank),
                "use a trace that records host calls");
  }
  const auto lane = static_cast<size_t>(thread);
  const uint32_t every = std::max(1u, how.every());
  size_t added = 0;
  for (uint32_t s = 0; s < steps; ++s) {
    plan.steps[lane][s] += added;
    if ((s + 1) % every != 0) continue;
    FreshOp write;
    write.kind = traces::OpKind::kCall;
    write.calls = true;
    write.call.communicator = communicator;
    write.call.sequence = static_cast<int64_t>(plan.fresh.size());
    write.call.collective = traces::Collective::kBarrier;
    write.call.bytes_in = write.call.bytes_out = how.bytes();
    // What the step has put on the streams is done first.
    for (LaneId l = 0; l < rank.lanes.size(); ++l) {
      const OpId past = rank.step_begin[l * (steps + 1) + s + 1];
      if (rank.on_gpu(l) && past > rank.lane_begin[l]) write.after.push_back(past - 1);
    }
    const size_t at = plan.steps[lane][s + 1] + added;
    auto& ops = plan.lanes[lane];
    ops.insert(ops.begin() + static_cast<std::ptrdiff_t>(at),
               {Planned::kFresh, static_cast<uint32_t>(plan.fresh.size())});
    plan.fresh.push_back(std::move(write));
    ++added;
  }
  plan.steps[lane][steps] += added;
  return rebuild(rank, plan);
}

}  // namespace

Result<void> write_checkpoint(traces::Program& program, const pb::WriteCheckpoint& how) {
  if (auto given = require(how.has_bytes(), "write-checkpoint", "bytes"); !given) return given;
  if (program.steps == 0) {
    return fail(Code::kBadInput, "the trace has no steps after which to write", "write-checkpoint",
                "record with profiler steps");
  }
  if (how.has_rank()) {
    RH_TRY(RankProgram * found, find_rank(program, how.rank(), "write-checkpoint"));
    (void)found;
  }
  for (RankProgram& rank : program.ranks) {
    if (how.has_rank() && rank.rank != how.rank()) continue;
    const auto communicator = static_cast<uint32_t>(program.communicators.size());
    program.communicators.push_back(
        {"checkpoint/" + std::to_string(rank.rank), how.storage(), {rank.rank}, kStorageBackend});
    RH_TRY(rank, with_writes(rank, program.steps, communicator, how));
  }
  return {};
}

}  // namespace rehearse::sim
