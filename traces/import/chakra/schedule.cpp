// SPDX-License-Identifier: Apache-2.0
#include "traces/import/chakra/schedule.hpp"

#include <algorithm>
#include <queue>

namespace rehearse::traces::chakra {

Schedule earliest_starts(std::span<const uint16_t> lane, std::span<const Nanos> duration,
                         std::span<const Dependency> dependencies, Nanos latest) {
  const size_t n = lane.size();
  Schedule out;
  out.start.assign(n, 0);
  // Followers of each operation, in one array.
  std::vector<uint32_t> begin(n + 1, 0), followers(dependencies.size()), missing(n, 0);
  for (const Dependency& d : dependencies) {
    ++begin[d.on + 1];
    ++missing[d.op];
  }
  for (size_t i = 0; i < n; ++i) begin[i + 1] += begin[i];
  std::vector<uint32_t> next(begin.begin(), begin.end() - 1);
  for (const Dependency& d : dependencies) followers[next[d.on]++] = d.op;

  using Ready = std::pair<Nanos, uint32_t>;
  std::priority_queue<Ready, std::vector<Ready>, std::greater<>> queue;
  std::vector<Nanos> ready(n, 0), free(size_t{UINT16_MAX} + 1, 0);
  std::vector<bool> done(n, false);
  for (uint32_t i = 0; i < n; ++i) {
    if (missing[i] == 0) queue.emplace(0, i);
  }
  uint32_t lowest = 0;
  for (;;) {
    if (queue.empty()) {
      while (lowest < n && done[lowest]) ++lowest;
      if (lowest == n) return out;
      if (out.cycles++ == 0) out.first_in_cycle = lowest;
      queue.emplace(ready[lowest], lowest);
    }
    const auto [at, op] = queue.top();
    queue.pop();
    if (done[op]) continue;
    done[op] = true;
    Nanos& lane_free = free[lane[op]];
    out.start[op] = std::min(std::max(at, lane_free), latest);
    const Nanos end = std::min(latest - out.start[op], duration[op]) + out.start[op];
    lane_free = std::max(lane_free, end);
    for (uint32_t f = begin[op]; f < begin[op + 1]; ++f) {
      const uint32_t follower = followers[f];
      // Equal starts are ordered by lane and then as recorded: where that would put the follower first,
      // it starts a nanosecond later.
      const bool tied = end == out.start[op] && end < latest &&
                        std::pair(lane[follower], follower) < std::pair(lane[op], op);
      ready[follower] = std::max(ready[follower], tied ? end + 1 : end);
      if (missing[follower] > 0 && --missing[follower] == 0 && !done[follower]) {
        queue.emplace(ready[follower], follower);
      }
    }
  }
}

}  // namespace rehearse::traces::chakra
