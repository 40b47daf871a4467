// SPDX-License-Identifier: Apache-2.0
// Steps that are repeated are written down once (traces/program/repeat.hpp): the columns of a rank do not grow with the
// factor, only its calls do. Where the order of a trace does not allow that, the program is written out.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "sim/scenario/rebuild.hpp"
#include "sim/scenario/transform.hpp"

namespace rehearse::sim {
namespace {

using traces::OpId;
using traces::RankProgram;
using traces::Repeat;

enum Stretch : int { kBefore, kInSteps, kAfter };

class StepRepeater {
 public:
  StepRepeater(const RankProgram& rank, uint32_t steps, uint32_t factor)
      : rank_(rank), steps_(steps), factor_(factor) {
    for (size_t l = 0; l < rank.lanes.size(); ++l) {
      const OpId* begin = first_step(l);
      lanes_.push_back({rank.lane_begin[l], begin[0] - rank.lane_begin[l], begin[steps] - begin[0],
                        rank.lane_begin[l + 1] - begin[steps]});
    }
  }

  [[nodiscard]] size_t operations() const {
    size_t sum = 0;
    for (const Repeat::Lane& lane : lanes_) {
      sum += lane.before + size_t{factor_} * lane.steps + lane.after;
    }
    return sum;
  }

  // Every copy waits for its own copy of what the steps wait for, and calls are issued part by part.
  [[nodiscard]] bool foldable() const {
    if (rank_.repeat != nullptr) return false;
    for (size_t l = 0; l < lanes_.size(); ++l) {
      for (OpId op = rank_.lane_begin[l]; op < rank_.lane_begin[l + 1]; ++op) {
        const Stretch part = part_of(op, l);
        for (OpId before : rank_.predecessors(op)) {
          if (part_of(before) > part) return false;
        }
      }
    }
    return std::is_sorted(rank_.call_op.begin(), rank_.call_op.end(),
                          [&](OpId a, OpId b) { return part_of(a) < part_of(b); });
  }

  [[nodiscard]] RankProgram folded() const {
    RankProgram out = rank_;  // columns are shared, not copied
    const auto repeat = std::make_shared<const Repeat>(lanes_, factor_);
    out.repeat = repeat;
    out.kind.repeat(repeat);
    out.name.repeat(repeat);
    out.gap.repeat(repeat);
    out.duration.repeat(repeat);
    if (!out.overlap.empty()) out.overlap.repeat(repeat);
    out.call.repeat(repeat, calls_per_copy());
    out.lane_begin.clear();
    for (size_t l = 0; l < lanes_.size(); ++l) out.lane_begin.push_back(repeat->lane_begin(l));
    out.lane_begin.push_back(repeat->size());
    place_steps(out);
    repeat_calls(*repeat, out);
    repeat_transfers(*repeat, out);
    out.inferred_edges = rank_.inferred_edges * factor_;
    // Known of what was recorded only.
    out.call_split.clear();
    out.unknown_gaps.clear();
    return out;
  }

  // The same, written out.
  [[nodiscard]] Plan plan() const {
    Plan plan;
    plan.copies = factor_;
    for (size_t l = 0; l < lanes_.size(); ++l) {
      const OpId* begin = first_step(l);
      auto& lane = plan.lanes.emplace_back();
      auto& begins = plan.steps.emplace_back();
      for (OpId op = rank_.lane_begin[l]; op < begin[0]; ++op) lane.push_back({op, 0});
      for (uint32_t copy = 0; copy < factor_; ++copy) {
        const size_t at = lane.size();
        for (uint32_t s = 0; s < steps_; ++s) begins.push_back(at + (begin[s] - begin[0]));
        for (OpId op = begin[0]; op < begin[steps_]; ++op) lane.push_back({op, copy});
      }
      begins.push_back(lane.size());
      // What comes after the steps is done once, after the last copy.
      for (OpId op = begin[steps_]; op < rank_.lane_begin[l + 1]; ++op) {
        lane.push_back({op, factor_ - 1});
      }
    }
    return plan;
  }

 private:
  [[nodiscard]] const OpId* first_step(size_t lane) const {
    return &rank_.step_begin[lane * (steps_ + 1)];
  }

  [[nodiscard]] Stretch part_of(OpId op, size_t lane) const {
    const OpId* begin = first_step(lane);
    return op < begin[0] ? kBefore : op < begin[steps_] ? kInSteps : kAfter;
  }
  [[nodiscard]] Stretch part_of(OpId op) const {
    const auto& begin = rank_.lane_begin;
    return part_of(op, static_cast<size_t>(std::upper_bound(begin.begin(), begin.end(), op) -
                                           begin.begin() - 1));
  }

  [[nodiscard]] uint32_t calls_per_copy() const {
    return static_cast<uint32_t>(std::count_if(rank_.call_op.begin(), rank_.call_op.end(),
                                               [&](OpId op) { return part_of(op) == kInSteps; }));
  }

  void place_steps(RankProgram& out) const {
    out.step_begin.clear();
    for (size_t l = 0; l < lanes_.size(); ++l) {
      const OpId* begin = first_step(l);
      const OpId first = out.lane_begin[l] + lanes_[l].before;
      for (uint32_t copy = 0; copy < factor_; ++copy) {
        for (uint32_t s = 0; s < steps_; ++s) {
          out.step_begin.push_back(first + copy * lanes_[l].steps + begin[s] - begin[0]);
        }
      }
      out.step_begin.push_back(first + factor_ * lanes_[l].steps);
    }
  }

  // Sequence numbers and groups of later copies go on where those before ended.
  void repeat_calls(const Repeat& repeat, RankProgram& out) const {
    std::map<std::tuple<uint32_t, int, int32_t>, int64_t> per_copy;
    uint64_t groups = 0;
    for (size_t c = 0; c < rank_.calls.size(); ++c) {
      groups = std::max(groups, rank_.calls[c].group);
      if (part_of(rank_.call_op[c]) == kInSteps) ++per_copy[counter_of(rank_.calls[c])];
    }
    out.calls.clear();
    out.call_op.clear();
    const auto add = [&](size_t c, uint32_t copy) {
      traces::Call call = rank_.calls[c];
      call.sequence += copy * per_copy[counter_of(call)];
      if (call.group != 0) call.group += copy * groups;
      out.calls.push_back(call);
      out.call_op.push_back(repeat.place(rank_.call_op[c], copy));
    };
    for (const Stretch part : {kBefore, kInSteps, kAfter}) {
      for (uint32_t copy = 0; copy < (part == kInSteps ? factor_ : 1); ++copy) {
        for (size_t c = 0; c < rank_.calls.size(); ++c) {
          if (part_of(rank_.call_op[c]) == part) add(c, part == kAfter ? factor_ - 1 : copy);
        }
      }
    }
  }

  void repeat_transfers(const Repeat& repeat, RankProgram& out) const {
    out.transfers.clear();
    for (const traces::Transfer& transfer : rank_.transfers) {
      const Stretch part = part_of(transfer.op);
      const uint32_t last = part == kBefore ? 0 : factor_ - 1;
      for (uint32_t copy = part == kAfter ? last : 0; copy <= last; ++copy) {
        out.transfers.push_back(transfer);
        out.transfers.back().op = repeat.place(transfer.op, copy);
      }
    }
    std::sort(out.transfers.begin(), out.transfers.end(),
              [](const traces::Transfer& a, const traces::Transfer& b) { return a.op < b.op; });
  }

  const RankProgram& rank_;
  const uint32_t steps_, factor_;
  std::vector<Repeat::Lane> lanes_;
};

}  // namespace

Result<void> repeat_steps(traces::Program& program, uint32_t factor) {
  if (program.steps == 0) {
    return fail(Code::kBadInput, "the trace has no steps that could be repeated", "steps",
                "record with profiler steps, or use a trace that has them");
  }
  if (factor <= 1) return {};
  for (RankProgram& rank : program.ranks) {
    const StepRepeater repeater(rank, program.steps, factor);
    if (auto few = check_operations(rank.rank, repeater.operations()); !few) return few;
    if (repeater.foldable()) {
      rank = repeater.folded();
    } else {
      RH_TRY(rank, rebuild(rank, repeater.plan()));
    }
  }
  program.steps *= factor;
  return {};
}

}  // namespace rehearse::sim
