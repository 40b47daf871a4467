// SPDX-License-Identifier: Apache-2.0
#include "sim/scenario/rebuild.hpp"

#include <algorithm>
#include <map>
#include <tuple>

namespace rehearse::sim {
namespace {

using traces::OpId;
using traces::RankProgram;

class Rebuilder {
 public:
  Rebuilder(const RankProgram& rank, const Plan& plan) : rank_(rank), plan_(plan) {}

  RankProgram build() {
    out_.rank = rank_.rank;
    out_.begin = rank_.begin;
    out_.lanes = rank_.lanes;
    out_.host = rank_.host;
    number();
    for (const auto& lane : plan_.lanes) {
      for (const Planned& op : lane) append(op);
    }
    out_.edge_begin.push_back(static_cast<uint32_t>(out_.edges.size()));
    out_.inferred_edges = static_cast<uint64_t>(
        std::count(out_.edge_inferred.begin(), out_.edge_inferred.end(), true));
    add_calls();
    add_transfers();
    for (size_t l = 0; l < plan_.steps.size(); ++l) {
      for (size_t at : plan_.steps[l])
        out_.step_begin.push_back(out_.lane_begin[l] + static_cast<OpId>(at));
    }
    return std::move(out_);
  }

 private:
  // Ids of the new operations, by (copy, source).
  void number() {
    place_.assign(plan_.copies, std::vector<OpId>(rank_.size(), Planned::kFresh));
    OpId next = 0;
    for (const auto& lane : plan_.lanes) {
      out_.lane_begin.push_back(next);
      for (const Planned& op : lane) {
        if (op.source != Planned::kFresh) place_[op.copy][op.source] = next;
        ++next;
      }
    }
    out_.lane_begin.push_back(next);
  }

  void append(const Planned& op) {
    const bool fresh = op.source == Planned::kFresh;
    const FreshOp* made = fresh ? &plan_.fresh[op.copy] : nullptr;
    out_.kind.push_back(fresh ? made->kind : rank_.kind[op.source]);
    out_.name.push_back(fresh ? made->name : rank_.name[op.source]);
    out_.gap.push_back(fresh ? made->gap : rank_.gap[op.source]);
    out_.duration.push_back(fresh ? made->duration : rank_.duration[op.source]);
    out_.call.push_back(traces::kNoCall);
    if (!rank_.overlap.empty()) {
      out_.overlap.push_back(fresh ? uint16_t{0} : rank_.overlap[op.source]);
    }
    out_.edge_begin.push_back(static_cast<uint32_t>(out_.edges.size()));
    if (fresh) {
      for (const OpId before : made->after) add_edge(place_[0][before], false);
      return;
    }
    size_t i = 0;
    for (const OpId before : rank_.predecessors(op.source)) {
      OpId at = place_[op.copy][before];
      if (at == Planned::kFresh) at = place_[0][before];
      add_edge(at, rank_.inferred(op.source, i++));
    }
  }

  void add_edge(OpId from, bool inferred) {
    if (from == Planned::kFresh) return;
    out_.edges.push_back(from);
    out_.edge_inferred.push_back(inferred);
  }

  void add_call(OpId op, const traces::Call& call) {
    out_.call[op] = static_cast<uint32_t>(out_.calls.size());
    out_.calls.push_back(call);
    out_.call_op.push_back(op);
  }

  // In the order issued: copy by copy.
  void add_calls() {
    std::map<std::tuple<uint32_t, int, int32_t>, int64_t> per_copy;
    uint64_t groups = 0;
    for (size_t c = 0; c < rank_.calls.size(); ++c) {
      groups = std::max(groups, rank_.calls[c].group);
      // A call that is done again in each copy; others are done once.
      if (plan_.copies > 1 && place_[0][rank_.call_op[c]] != Planned::kFresh &&
          place_[plan_.copies - 1][rank_.call_op[c]] != Planned::kFresh) {
        ++per_copy[counter_of(rank_.calls[c])];
      }
    }
    for (uint32_t copy = 0; copy < plan_.copies; ++copy) {
      for (size_t c = 0; c < rank_.calls.size(); ++c) {
        const OpId op = place_[copy][rank_.call_op[c]];
        if (op == Planned::kFresh) continue;
        traces::Call call = rank_.calls[c];
        call.sequence += static_cast<int64_t>(copy) * per_copy[counter_of(call)];
        if (call.group != 0) call.group += copy * groups;
        add_call(op, call);
      }
    }
  }

  void add_transfers() {
    for (const auto& places : place_) {
      for (traces::Transfer transfer : rank_.transfers) {
        transfer.op = places[transfer.op];
        if (transfer.op != Planned::kFresh) out_.transfers.push_back(transfer);
      }
    }
    for (size_t l = 0; l < plan_.lanes.size(); ++l) {
      for (size_t i = 0; i < plan_.lanes[l].size(); ++i) {
        const Planned& op = plan_.lanes[l][i];
        if (op.source != Planned::kFresh || !plan_.fresh[op.copy].transfer) continue;
        out_.transfers.push_back(*plan_.fresh[op.copy].transfer);
        out_.transfers.back().op = out_.lane_begin[l] + static_cast<OpId>(i);
      }
    }
    std::sort(out_.transfers.begin(), out_.transfers.end(),
              [](const traces::Transfer& a, const traces::Transfer& b) { return a.op < b.op; });
  }

  const RankProgram& rank_;
  const Plan& plan_;
  RankProgram out_;
  std::vector<std::vector<OpId>> place_;
};

}  // namespace

std::tuple<uint32_t, int, int32_t> counter_of(const traces::Call& call) {
  if (!traces::is_point_to_point(call.collective)) return {call.communicator, -1, -1};
  return {call.communicator, static_cast<int>(call.collective), call.peer};
}

Result<RankProgram> rebuild(const RankProgram& rank, const Plan& plan) {
  size_t operations = 0;
  for (const auto& lane : plan.lanes) operations += lane.size();
  if (auto few = check_operations(rank.rank, operations); !few) return tl::unexpected(few.error());
  return Rebuilder(rank, plan).build();
}

Result<void> check_operations(traces::RankId rank, size_t operations) {
  constexpr size_t kMostOperations = 1'000'000'000;
  if (operations <= kMostOperations) return {};
  return fail(Code::kLimit, "the program would have more than a billion operations per rank",
              "rank " + std::to_string(rank), "use a smaller factor");
}

int main_thread(const RankProgram& rank, uint32_t steps) {
  int found = -1;
  OpId most = 0;
  for (traces::LaneId l = 0; l < rank.lanes.size(); ++l) {
    if (rank.on_gpu(l)) continue;
    const OpId* begin = &rank.step_begin[size_t{l} * (steps + 1)];
    if (begin[steps] - begin[0] <= most) continue;
    most = begin[steps] - begin[0];
    found = static_cast<int>(l);
  }
  return found;
}

Plan plan_of(const RankProgram& rank, uint32_t steps) {
  Plan plan;
  for (size_t l = 0; l < rank.lanes.size(); ++l) {
    auto& lane = plan.lanes.emplace_back();
    for (OpId op = rank.lane_begin[l]; op < rank.lane_begin[l + 1]; ++op) lane.push_back({op, 0});
    auto& begins = plan.steps.emplace_back();
    for (uint32_t s = 0; s <= steps; ++s) {
      begins.push_back(rank.step_begin[l * (steps + 1) + s] - rank.lane_begin[l]);
    }
  }
  return plan;
}

Result<void> write_out(RankProgram& rank, uint32_t steps) {
  if (rank.repeat == nullptr) return {};
  RH_TRY(rank, rebuild(rank, plan_of(rank, steps)));
  return {};
}

}  // namespace rehearse::sim
