// SPDX-License-Identifier: Apache-2.0
#include "traces/program/overlap.hpp"

#include <algorithm>
#include <cmath>

namespace rehearse::traces {

std::vector<uint16_t> recorded_overlap(const RankTrace& rank, const RankProgram& program,
                                       std::span<const uint32_t> source) {
  const Operations& ops = rank.ops;
  std::vector<std::pair<Nanos, Nanos>> calls;  // disjoint, ascending
  for (size_t i = 0; i < ops.size(); ++i) {    // in order of start
    if (ops.kind[i] != OpKind::kCall || rank.lanes[ops.lane[i]].kind != LaneKind::kStream) continue;
    const Nanos start = ops.start[i], end = start + std::max<Nanos>(0, ops.duration[i]);
    if (!calls.empty() && start <= calls.back().second) {
      calls.back().second = std::max(calls.back().second, end);
    } else {
      calls.emplace_back(start, end);
    }
  }
  std::vector<uint16_t> out;
  if (calls.empty()) return out;
  for (LaneId l = 0; l < program.lanes.size(); ++l) {
    if (!program.on_gpu(l)) continue;
    size_t at = 0;
    for (OpId op = program.lane_begin[l]; op < program.lane_begin[l + 1]; ++op) {
      if (program.kind[op] != OpKind::kKernel || program.duration[op] <= 0) continue;
      const Nanos start = ops.start[source[op]], end = start + program.duration[op];
      while (at < calls.size() && calls[at].second <= start) ++at;
      Nanos beside = 0;
      for (size_t c = at; c < calls.size() && calls[c].first < end; ++c) {
        beside += std::min(end, calls[c].second) - std::max(start, calls[c].first);
      }
      if (beside <= 0) continue;
      if (out.empty()) out.assign(program.size(), 0);
      const double share = static_cast<double>(beside) / static_cast<double>(program.duration[op]);
      out[op] = static_cast<uint16_t>(std::lround(std::min(share, 1.0) * 65535));
    }
  }
  return out;
}

}  // namespace rehearse::traces
