// SPDX-License-Identifier: Apache-2.0
#include "sim/scenario/cut_calls.hpp"

#include <utility>

#include "sim/scenario/rebuild.hpp"

namespace rehearse::sim {
namespace {

using traces::OpId;

// Puts fresh operations before those that they are named by, on the same lane.
void insert(Plan& plan, const std::map<OpId, std::vector<uint32_t>>& ahead) {
  for (size_t l = 0; l < plan.lanes.size(); ++l) {
    std::vector<Planned> lane;
    std::vector<size_t> begins = plan.steps[l];
    size_t step = 0;
    for (size_t i = 0; i < plan.lanes[l].size(); ++i) {
      for (; step < begins.size() && plan.steps[l][step] <= i; ++step) begins[step] = lane.size();
      const auto found = ahead.find(plan.lanes[l][i].source);
      if (found != ahead.end()) {
        for (const uint32_t fresh : found->second) lane.push_back({Planned::kFresh, fresh});
      }
      lane.push_back(plan.lanes[l][i]);
    }
    for (; step < begins.size(); ++step) begins[step] = lane.size();
    plan.lanes[l] = std::move(lane);
    plan.steps[l] = std::move(begins);
  }
}

// The parts of each call stand side by side on their lane, the last in the place of the whole.
void name_parts(traces::RankProgram& rank, const std::vector<OpId>& old_op,
                const std::map<OpId, CallCut>& cuts) {
  std::vector<traces::Call> calls;
  std::vector<OpId> ops;
  std::vector<traces::CallSplit> splits;
  for (size_t c = 0; c < rank.calls.size(); ++c) {
    const auto found = cuts.find(old_op[c]);
    if (found == cuts.end()) {
      calls.push_back(rank.calls[c]);
      ops.push_back(rank.call_op[c]);
      if (!rank.call_split.empty()) splits.push_back(rank.call_split[c]);
      continue;
    }
    const std::vector<traces::Call>& parts = found->second.parts;
    if (parts.empty()) {
      const OpId gone = rank.call_op[c];
      rank.call[gone] = traces::kNoCall;
      rank.kind[gone] = traces::OpKind::kMemset;
      rank.duration[gone] = 0;
      continue;
    }
    const auto first = rank.call_op[c] + 1 - static_cast<OpId>(parts.size());
    for (size_t i = 0; i < parts.size(); ++i) {
      calls.push_back(parts[i]);
      ops.push_back(first + static_cast<OpId>(i));
      if (!rank.call_split.empty()) splits.emplace_back();
    }
  }
  rank.calls = std::move(calls);
  rank.call_op = std::move(ops);
  rank.call_split = std::move(splits);
  for (size_t c = 0; c < rank.calls.size(); ++c) {
    rank.call[rank.call_op[c]] = static_cast<uint32_t>(c);
  }
}

}  // namespace

Result<void> cut_calls(traces::RankProgram& rank, uint32_t steps,
                       const std::map<OpId, CallCut>& cuts) {
  if (cuts.empty()) return {};
  Plan plan = plan_of(rank, steps);
  std::map<OpId, std::vector<uint32_t>> ahead;  // indices of fresh operations
  for (const auto& [op, cut] : cuts) {
    rank.gap[op] += cut.wait;
    for (size_t i = 0; i + 1 < cut.parts.size(); ++i) {
      FreshOp fresh{rank.kind[op], rank.name[op], 0, 0, {}, {}};
      if (i == 0) {
        fresh.gap = std::exchange(rank.gap[op], 0);
        for (const OpId cause : rank.predecessors(op)) fresh.after.push_back(cause);
      }
      ahead[op].push_back(static_cast<uint32_t>(plan.fresh.size()));
      plan.fresh.push_back(std::move(fresh));
    }
  }
  insert(plan, ahead);
  const std::vector<OpId> old_op = rank.call_op;
  RH_TRY(rank, rebuild(rank, plan));
  name_parts(rank, old_op, cuts);
  return {};
}

}  // namespace rehearse::sim
