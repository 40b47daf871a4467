// SPDX-License-Identifier: Apache-2.0
#include "traces/inspect/intervals.hpp"

#include <algorithm>

namespace rehearse::traces {
namespace {

auto first_in(const std::vector<Interval>& parts, Interval window) {
  return std::partition_point(parts.begin(), parts.end(),
                              [&](const Interval& part) { return part.end <= window.start; });
}

Nanos clipped(Interval part, Interval window) {
  return std::max<Nanos>(0, std::min(part.end, window.end) - std::max(part.start, window.start));
}

}  // namespace

Nanos IntervalUnion::covered(Interval window) const {
  Nanos total = 0;
  for (auto part = first_in(parts_, window); part != parts_.end() && part->start < window.end;
       ++part) {
    total += clipped(*part, window);
  }
  return total;
}

Nanos covered_by_both(const IntervalUnion& a, const IntervalUnion& b, Interval window) {
  Nanos total = 0;
  auto x = first_in(a.parts(), window), y = first_in(b.parts(), window);
  while (x != a.parts().end() && y != b.parts().end()) {
    const Interval both{std::max(x->start, y->start), std::min(x->end, y->end)};
    if (both.start >= window.end) break;
    if (both.start < both.end) total += clipped(both, window);
    ++(x->end < y->end ? x : y);
  }
  return total;
}

}  // namespace rehearse::traces
