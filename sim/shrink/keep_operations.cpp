// SPDX-License-Identifier: Apache-2.0
// A clock per operation: of each lane the last kept operation that comes before it. An edge is needed where the clock of
// the operation is ahead of that of the kept one before it in its lane.
#include "sim/shrink/keep_operations.hpp"

#include <algorithm>

namespace rehearse::sim {

void keep_operations(JobRank& rank, const std::vector<bool>& keep) {
  const size_t lanes = rank.lanes.size(), n = rank.ops.size();
  std::vector<uint32_t> clock(n * lanes, 0);  // position among the kept + 1; 0: none
  std::vector<uint32_t> last(lanes, UINT32_MAX);
  std::vector<std::vector<uint32_t>> kept_clock(lanes, std::vector<uint32_t>(lanes, 0));
  std::vector<JobOp> out;
  for (size_t i = 0; i < n; ++i) {
    JobOp& op = rank.ops[i];
    uint32_t* mine = &clock[i * lanes];
    const auto join = [&](size_t before) {
      for (size_t l = 0; l < lanes; ++l) mine[l] = std::max(mine[l], clock[before * lanes + l]);
    };
    if (last[op.lane] != UINT32_MAX) join(last[op.lane]);
    for (const uint32_t before : op.after) join(before);
    last[op.lane] = static_cast<uint32_t>(i);
    if (!keep[i]) continue;
    std::vector<uint32_t>& before = kept_clock[op.lane];
    op.after.clear();
    for (size_t l = 0; l < lanes; ++l) {
      if (l != op.lane && mine[l] > before[l]) op.after.push_back(mine[l] - 1);
    }
    std::sort(op.after.begin(), op.after.end());
    mine[op.lane] = static_cast<uint32_t>(out.size()) + 1;
    before.assign(mine, mine + lanes);
    out.push_back(std::move(op));
  }
  rank.ops = std::move(out);
}

}  // namespace rehearse::sim
