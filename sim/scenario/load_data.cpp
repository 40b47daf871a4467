// SPDX-License-Identifier: Apache-2.0
// A loader thread beside the recorded ones: it reads one batch per step, some ahead of the step that uses it.
#include <algorithm>
#include <map>

#include "sim/scenario/rebuild.hpp"
#include "sim/scenario/transform.hpp"

namespace rehearse::sim {
namespace {

using traces::OpId;
using traces::RankProgram;

constexpr uint32_t kUsualAhead = 2;  // torch.utils.data.DataLoader, prefetch_factor

// Edges from `after[op]` to `op` besides those there are; operations are laid out already.
void add_edges(const std::map<OpId, OpId>& after, RankProgram& rank) {
  std::vector<uint32_t> begin;
  std::vector<OpId> edges;
  std::vector<bool> inferred;
  for (OpId op = 0; op < rank.size(); ++op) {
    begin.push_back(static_cast<uint32_t>(edges.size()));
    // Those of the new lane have none yet.
    size_t i = 0;
    if (op + 1 < rank.edge_begin.size()) {
      for (const OpId before : rank.predecessors(op)) {
        edges.push_back(before);
        inferred.push_back(rank.inferred(op, i++));
      }
    }
    if (const auto at = after.find(op); at != after.end()) {
      edges.push_back(at->second);
      inferred.push_back(false);
    }
  }
  begin.push_back(static_cast<uint32_t>(edges.size()));
  rank.edge_begin = std::move(begin);
  rank.edges = std::move(edges);
  rank.edge_inferred = std::move(inferred);
}

Result<void> add_loader(RankProgram& rank, uint32_t steps, uint32_t storage,
                        const pb::LoadData& how) {
  const int thread = main_thread(rank, steps);
  if (thread < 0) {
    return fail(Code::kBadInput, "no host thread of the rank works in its steps",
                "load-data: rank " + std::to_string(rank.rank),
                "use a trace that records host calls");
  }
  // Each step has a batch of its own.
  if (auto done = write_out(rank, steps); !done) return done;
  const uint32_t ahead = how.ahead() == 0 ? kUsualAhead : how.ahead();
  int64_t highest = 0;
  for (const traces::Lane& lane : rank.lanes) highest = std::max(highest, lane.id);
  rank.lanes.push_back({traces::LaneKind::kHostThread, highest + 1, 0});
  const auto first = static_cast<OpId>(rank.size());
  // Where the main thread begins step s; kNoOp: it does nothing in it.
  const auto begin_of = [&](uint32_t s) {
    const OpId* begin = &rank.step_begin[static_cast<size_t>(thread) * (steps + 1)];
    return begin[s] < begin[s + 1] ? begin[s] : traces::kNoOp;
  };
  std::map<OpId, OpId> after;
  for (uint32_t s = 0; s < steps; ++s) {
    const OpId load = first + s;
    rank.kind.push_back(traces::OpKind::kHost);
    rank.name.push_back(0);
    rank.gap.push_back(0);
    rank.duration.push_back(0);
    rank.call.push_back(traces::kNoCall);
    if (!rank.overlap.empty()) rank.overlap.push_back(0);
    traces::Transfer transfer;
    transfer.op = load;
    transfer.way = traces::Way::kLoad;
    transfer.bytes = how.bytes();
    transfer.storage = storage;
    rank.transfers.push_back(transfer);
    if (const OpId use = begin_of(s); use != traces::kNoOp) after[use] = load;
    if (s >= ahead && begin_of(s - ahead) != traces::kNoOp) after[load] = begin_of(s - ahead);
  }
  rank.lane_begin.push_back(first + steps);
  for (uint32_t s = 0; s <= steps; ++s) rank.step_begin.push_back(first + s);
  add_edges(after, rank);
  return {};
}

}  // namespace

Result<void> load_data(traces::Program& program, const pb::LoadData& how) {
  if (program.steps == 0) {
    return fail(Code::kBadInput, "the trace has no steps", "load-data",
                "record with profiler steps");
  }
  const uint32_t storage = storage_index(program, how.storage());
  for (RankProgram& rank : program.ranks) {
    if (how.has_rank() && rank.rank != how.rank()) continue;
    if (auto added = add_loader(rank, program.steps, storage, how); !added) return added;
  }
  return {};
}

}  // namespace rehearse::sim
