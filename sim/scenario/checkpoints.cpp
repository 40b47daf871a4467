// SPDX-License-Identifier: Apache-2.0
// Checkpoints: operations on the main thread of a rank that move bytes between its GPU and storage.
#include <algorithm>

#include "sim/scenario/rebuild.hpp"
#include "sim/scenario/transform.hpp"

namespace rehearse::sim {
namespace {

using traces::LaneId;
using traces::OpId;
using traces::RankProgram;

FreshOp moving(traces::Way way, Bytes bytes, uint32_t storage) {
  FreshOp op;
  op.transfer.emplace();
  op.transfer->way = way;
  op.transfer->bytes = bytes;
  op.transfer->storage = storage;
  return op;
}

Result<size_t> saving_thread(const RankProgram& rank, uint32_t steps, const char* patch) {
  const int thread = main_thread(rank, steps);
  if (thread >= 0) return static_cast<size_t>(thread);
  return fail(Code::kBadInput, "no host thread of the rank works in its steps",
              std::string(patch) + ": rank " + std::to_string(rank.rank),
              "use a trace that records host calls");
}

Result<RankProgram> with_writes(const RankProgram& rank, uint32_t steps, uint32_t storage,
                                const pb::WriteCheckpoint& how) {
  Plan plan = plan_of(rank, steps);
  RH_TRY(const size_t lane, saving_thread(rank, steps, "write-checkpoint"));
  const uint32_t every = std::max(1u, how.every());
  size_t added = 0;
  for (uint32_t s = 0; s < steps; ++s) {
    plan.steps[lane][s] += added;
    if ((s + 1) % every != 0) continue;
    FreshOp write = moving(traces::Way::kSave, how.bytes(), storage);
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

// Before the first operation of the first step; what came before on the thread is done.
Result<RankProgram> with_read(const RankProgram& rank, uint32_t steps, uint32_t storage,
                              Bytes bytes) {
  Plan plan = plan_of(rank, steps);
  RH_TRY(const size_t lane, saving_thread(rank, steps, "read-checkpoint"));
  auto& ops = plan.lanes[lane];
  ops.insert(ops.begin() + static_cast<std::ptrdiff_t>(plan.steps[lane][0]),
             {Planned::kFresh, static_cast<uint32_t>(plan.fresh.size())});
  plan.fresh.push_back(moving(traces::Way::kRestore, bytes, storage));
  for (size_t& begin : plan.steps[lane]) ++begin;
  return rebuild(rank, plan);
}

Result<void> check_steps(const traces::Program& program, const char* patch) {
  if (program.steps > 0) return {};
  return fail(Code::kBadInput, "the trace has no steps", patch, "record with profiler steps");
}

}  // namespace

Result<void> write_checkpoint(traces::Program& program, const pb::WriteCheckpoint& how) {
  if (auto good = check_steps(program, "write-checkpoint"); !good) return good;
  const uint32_t storage = storage_index(program, how.storage());
  for (RankProgram& rank : program.ranks) {
    if (how.has_rank() && rank.rank != how.rank()) continue;
    RH_TRY(rank, with_writes(rank, program.steps, storage, how));
  }
  return {};
}

Result<void> read_checkpoint(traces::Program& program, const pb::ReadCheckpoint& how) {
  if (auto good = check_steps(program, "read-checkpoint"); !good) return good;
  const uint32_t storage = storage_index(program, how.storage());
  for (RankProgram& rank : program.ranks) {
    if (how.has_rank() && rank.rank != how.rank()) continue;
    RH_TRY(rank, with_read(rank, program.steps, storage, how.bytes()));
  }
  return {};
}

}  // namespace rehearse::sim
