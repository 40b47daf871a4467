// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "sim/scenario/transform.hpp"

namespace rehearse::sim {
namespace {

using traces::LaneId;
using traces::OpId;
using traces::RankProgram;

bool waits_for_host(const RankProgram& rank, OpId op) {
  const auto before = rank.predecessors(op);
  return std::any_of(before.begin(), before.end(),
                     [&](OpId from) { return !rank.on_gpu(rank.lane_of(from)); });
}

// Every host thread begins the step later; one that another thread starts is late already.
void pause(RankProgram& rank, uint32_t steps, uint32_t step, Nanos duration) {
  for (LaneId l = 0; l < rank.lanes.size(); ++l) {
    if (rank.on_gpu(l)) continue;
    const OpId op = rank.step_begin[l * (steps + 1) + step];
    if (op >= rank.step_begin[l * (steps + 1) + step + 1] || waits_for_host(rank, op)) continue;
    rank.gap[op] += duration;
  }
}

}  // namespace

Result<void> pause_rank(traces::Program& program, const pb::PauseRank& how) {
  if (how.has_step() == how.has_every()) {
    return fail(Code::kBadInput, "either step or every says when", "pause-rank",
                "write pause-rank: {rank: 3, step: 1, duration: 200ms}");
  }
  if (how.has_step() && how.step() >= program.steps) {
    return fail(Code::kBadInput, "there is no step " + std::to_string(how.step()),
                "pause-rank: step",
                "the trace has " + std::to_string(program.steps) + " steps, counted from 0");
  }
  if (how.duration() > kLongestPause) {
    return fail(Code::kBadInput, "a pause of more than a year", "pause-rank: duration",
                "stop the rank instead: stop-rank: {rank: 3, at: 1s, silent: true}");
  }
  for (RankProgram& rank : program.ranks) {
    if (how.has_rank() && rank.rank != how.rank()) continue;
    for (uint32_t s = 0; s < program.steps; ++s) {
      if (how.has_step() ? s == how.step() : s % how.every() == 0) {
        pause(rank, program.steps, s, how.duration());
      }
    }
  }
  return {};
}

}  // namespace rehearse::sim
