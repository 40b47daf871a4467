// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "sim/outcome/outcome.hpp"

namespace rehearse::sim {

std::vector<Nanos> step_ends(const Evidence& evidence) {
  const uint32_t steps = evidence.program.steps;
  std::vector<Nanos> ends(steps + 1, 0);
  std::vector<bool> open(steps + 1, false);
  for (size_t r = 0; r < evidence.program.ranks.size(); ++r) {
    const traces::RankProgram& rank = evidence.program.ranks[r];
    for (traces::LaneId l = 0; l < rank.lanes.size(); ++l) {
      // Entry s covers what comes before step s; operations of step s - 1 and earlier.
      for (uint32_t s = 0; s <= steps; ++s) {
        const OpId past = rank.step_begin[l * (steps + 1) + s];
        if (past == rank.lane_begin[l]) continue;
        const Nanos end = evidence.replayed.end[r][past - 1];
        if (end < 0) open[s] = true;
        ends[s] = std::max(ends[s], end);
      }
    }
  }
  for (uint32_t s = 0; s <= steps; ++s) {
    if (open[s]) {
      ends.resize(s);
      break;
    }
    if (s > 0) ends[s] = std::max(ends[s], ends[s - 1]);
  }
  return ends;
}

Nanos time_of(const std::vector<Nanos>& ends, uint32_t step, double part) {
  if (step >= ends.size()) return -1;
  const Nanos from = step == 0 ? 0 : ends[step - 1];
  return from + static_cast<Nanos>(part * static_cast<double>(ends[step] - from));
}

void fill_step_times(const std::vector<Nanos>& ends, pb::StepTimes& out) {
  if (ends.size() < 2) return;
  std::vector<Nanos> each;
  for (size_t s = 1; s < ends.size(); ++s) each.push_back(ends[s] - ends[s - 1]);
  for (Nanos time : each) out.add_each(time);
  out.set_mean((ends.back() - ends.front()) / static_cast<Nanos>(each.size()));
  std::sort(each.begin(), each.end());
  // Nearest rank: the smallest time that at least p percent of the steps do not exceed.
  const auto percentile = [&](size_t p) { return each[(each.size() * p + 99) / 100 - 1]; };
  out.set_p50(percentile(50));
  out.set_p90(percentile(90));
  out.set_p99(percentile(99));
  out.set_min(each.front());
  out.set_max(each.back());
}

}  // namespace rehearse::sim
