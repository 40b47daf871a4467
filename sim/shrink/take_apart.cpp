// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "sim/scenario/places.hpp"
#include "sim/scenario/transform.hpp"
#include "sim/scenario/transforms.hpp"
#include "sim/shrink/job.hpp"
#include "sim/shrink/keep_operations.hpp"

namespace rehearse::sim {
namespace {

using traces::kNoCall;
using traces::OpId;
using traces::OpKind;
using traces::RankProgram;

constexpr size_t kMostJobOperations = 3'000'000;

// The operations of a rank in an order in which they can be done; those in a circle are left out.
std::vector<OpId> in_order(const RankProgram& rank) {
  std::vector<OpId> order, cursor(rank.lane_begin.begin(), rank.lane_begin.end() - 1);
  std::vector<bool> done(rank.size(), false);
  // Calls come in the order in which they were issued, so that they can be numbered anew.
  size_t next_call = 0;
  for (bool moved = true; moved;) {
    moved = false;
    for (size_t l = 0; l < rank.lanes.size(); ++l) {
      for (; cursor[l] < rank.lane_begin[l + 1]; ++cursor[l]) {
        const OpId op = cursor[l];
        const auto before = rank.predecessors(op);
        if (std::any_of(before.begin(), before.end(), [&](OpId b) { return !done[b]; })) break;
        if (rank.call[op] != kNoCall) {
          if (rank.call[op] > next_call) break;
          ++next_call;
        }
        done[op] = moved = true;
        order.push_back(op);
      }
    }
    // An earlier call that can never be done does not hold the others.
    if (!moved && next_call < rank.calls.size()) {
      ++next_call;
      moved = true;
    }
  }
  return order;
}

OpKind plain(OpKind kind) {
  const bool host = kind == OpKind::kSync || kind == OpKind::kGraphLaunch || kind == OpKind::kHost;
  return host ? OpKind::kLaunch : kind;
}

std::optional<traces::Copy> copy_of(const RankProgram& rank, OpId op) {
  const traces::Transfer* transfer = rank.transfer(op);
  if (transfer == nullptr) return std::nullopt;
  switch (transfer->way) {
    case traces::Way::kHostToDevice:
      return traces::Copy{traces::CopyDirection::kHostToDevice, transfer->bytes};
    case traces::Way::kDeviceToHost:
      return traces::Copy{traces::CopyDirection::kDeviceToHost, transfer->bytes};
    case traces::Way::kPeer:
      return traces::Copy{traces::CopyDirection::kPeer, transfer->bytes};
    default:
      return std::nullopt;
  }
}

JobRank rank_of(const traces::Program& program, const RankProgram& rank, Kept kept) {
  JobRank out;
  out.rank = rank.rank;
  out.lanes = rank.lanes;
  const std::vector<OpId> order = in_order(rank);
  std::vector<uint32_t> at(rank.size(), UINT32_MAX);
  std::vector<bool> keep;
  for (const OpId op : order) {
    at[op] = static_cast<uint32_t>(out.ops.size());
    JobOp& made = out.ops.emplace_back();
    made.lane = rank.lane_of(op);
    made.kind = plain(rank.kind[op]);
    made.name = rank.name[op];
    made.duration = rank.duration[op];
    const OpId* begin = &rank.step_begin[made.lane * (program.steps + 1)];
    for (uint32_t s = 0; s <= program.steps && program.steps > 0 && begin[s] <= op; ++s) {
      made.step = static_cast<int>(s);
    }
    const bool call = rank.call[op] != kNoCall;
    if (call) {
      made.call = rank.calls[rank.call[op]];
      made.kind = OpKind::kCall;
      const auto& members = program.communicators[made.call->communicator].members;
      const int32_t peer = made.call->peer;
      if (peer >= 0 && static_cast<size_t>(peer) < members.size()) {
        made.peer = members[static_cast<size_t>(peer)];
      }
    }
    made.copy = copy_of(rank, op);
    for (const OpId before : rank.predecessors(op)) made.after.push_back(at[before]);
    std::sort(made.after.begin(), made.after.end());
    keep.push_back(call || kept == Kept::kEverything);
  }
  if (kept == Kept::kCalls) keep_operations(out, keep);
  return out;
}

void add_allocations(const traces::RankTrace& rank, uint32_t steps, JobRank& out) {
  for (size_t i = 0; i < rank.ops.size(); ++i) {
    const traces::Memory* memory = rank.ops.mem(i);
    if (memory == nullptr) continue;
    JobAllocation made{rank.ops.name[i], *memory, -1};
    for (uint32_t s = 0; s < steps && s < rank.steps.size(); ++s) {
      if (rank.ops.start[i] >= rank.steps[s].start) made.step = static_cast<int>(s);
    }
    out.allocations.push_back(made);
  }
}

// Steps of each rank. Where they differ, what lies behind the last that all have is a step of those that have more.
void count_steps(const Scenario& scenario, uint32_t common, Job& job) {
  job.steps = common;
  for (size_t r = 0; r < job.ranks.size(); ++r) {
    const bool more = scenario.trace->ranks[r].steps.size() > common;
    job.ranks[r].steps =
        more && scenario.trace->ranks.size() == job.ranks.size() ? common + 1 : common;
  }
  const auto uneven = std::any_of(job.ranks.begin(), job.ranks.end(), [&](const JobRank& rank) {
    return rank.steps != job.ranks.front().steps;
  });
  for (JobRank& rank : job.ranks) rank.steps = uneven ? rank.steps : common;
  if (uneven) ++job.steps;
  for (const pb::Patch& patch : scenario.transforms) {
    for (JobRank& rank : job.ranks) {
      if (patch.has_end_early() && patch.end_early().rank() == rank.rank) {
        rank.steps = std::min(rank.steps, patch.end_early().steps());
      }
    }
  }
}

// Transforms that act on the run or on memory stay patches, all others become part of the program.
bool stays(const pb::Patch& patch) {
  return acts_on(patch, ActsOn::kRun) || acts_on(patch, ActsOn::kMemory);
}

void take_platform(const Scenario& scenario, Job& job) {
  const auto settings = settings_of(scenario);
  pb::Platform& platform = *job.document.mutable_platform();
  for (int n = 0; n < scenario.document.platform().nodes_size(); ++n) {
    job.nodes.push_back(static_cast<uint32_t>(n));
  }
  job.nodes_before = static_cast<uint32_t>(job.nodes.size());
  if (!settings) {
    platform = scenario.document.platform();
    return;
  }
  platform = scenario.written;
  job.settings = *settings;
  if (platform.nodes_size() == 1) {
    job.gpus_per_node = static_cast<uint32_t>(scenario.document.platform().nodes(0).gpus_size());
  }
}

}  // namespace

Result<Job> take_apart(const Scenario& scenario, Kept kept) {
  if (scenario.replicas > 1) {
    return fail(Code::kBadInput, "replicas of grow-data-parallel cannot be taken apart",
                scenario.document.name(), "leave the patch out: recorded ranks show the same");
  }
  RH_TRY(traces::Program program, traces::build_program(*scenario.trace));
  Job job;
  job.source = scenario.trace;
  job.document = scenario.document;
  job.document.clear_patches();
  job.document.clear_trace();
  for (const pb::Patch& patch : scenario.transforms) {
    if (stays(patch)) {
      job.patches.push_back(patch);
    } else if (auto done = transform(program, patch); !done) {
      return tl::unexpected(done.error());
    }
  }
  for (const pb::Patch& patch : scenario.timed) {
    RH_TRY(pb::Patch made, with_node_indices(patch, scenario.document));
    job.patches.push_back(std::move(made));
  }
  if (kept == Kept::kEverything && program.operations() > kMostJobOperations) {
    return fail(Code::kLimit, "the job has too many operations to be taken apart",
                scenario.document.name(), "shrink a run of fewer ranks or steps");
  }
  job.communicators = program.communicators;
  for (const RankProgram& rank : program.ranks) {
    JobRank made = rank_of(program, rank, kept);
    for (const pb::RankLaunch& seat : scenario.document.launch().ranks()) {
      if (seat.rank() == rank.rank) made.seat = seat;
    }
    if (kept == Kept::kEverything) {
      const int at = program.find(rank.rank);
      add_allocations(scenario.trace->ranks[static_cast<size_t>(at)], program.steps, made);
    }
    job.ranks.push_back(std::move(made));
  }
  count_steps(scenario, program.steps, job);
  pb::Launch& launch = *job.document.mutable_launch();
  const auto counted = static_cast<int64_t>(launch.world_size());
  job.missing = static_cast<int>(counted - static_cast<int64_t>(job.ranks.size()));
  launch.clear_ranks();
  take_platform(scenario, job);
  return job;
}

}  // namespace rehearse::sim
