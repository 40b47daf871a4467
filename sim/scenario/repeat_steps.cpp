// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "sim/scenario/rebuild.hpp"
#include "sim/scenario/transform.hpp"

namespace rehearse::sim {

using traces::OpId;
using traces::RankProgram;

Result<void> repeat_steps(traces::Program& program, uint32_t factor) {
  if (program.steps == 0) {
    return fail(Code::kBadInput, "the trace has no steps that could be repeated", "steps",
                "record with profiler steps, or use a trace that has them");
  }
  const uint32_t steps = program.steps;
  if (factor <= 1) return {};
  for (RankProgram& rank : program.ranks) {
    Plan plan;
    plan.copies = factor;
    for (size_t l = 0; l < rank.lanes.size(); ++l) {
      const OpId* begin = &rank.step_begin[l * (steps + 1)];
      auto& lane = plan.lanes.emplace_back();
      auto& begins = plan.steps.emplace_back();
      for (OpId op = rank.lane_begin[l]; op < begin[0]; ++op) lane.push_back({op, 0});
      for (uint32_t copy = 0; copy < factor; ++copy) {
        const size_t at = lane.size();
        for (uint32_t s = 0; s < steps; ++s) begins.push_back(at + (begin[s] - begin[0]));
        for (OpId op = begin[0]; op < begin[steps]; ++op) lane.push_back({op, copy});
      }
      begins.push_back(lane.size());
      // What comes after the steps is done once, after the last copy.
      for (OpId op = begin[steps]; op < rank.lane_begin[l + 1]; ++op)
        lane.push_back({op, factor - 1});
    }
    RH_TRY(rank, rebuild(rank, plan));
  }
  program.steps = steps * factor;
  return {};
}

}  // namespace rehearse::sim
