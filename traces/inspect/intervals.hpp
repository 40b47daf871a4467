// SPDX-License-Identifier: Apache-2.0
// Unions of time intervals and how much of a window they cover. Pure.
#pragma once

#include <vector>

#include "base/units.hpp"

namespace rehearse::traces {

struct Interval {
  Nanos start = 0;
  Nanos end = 0;  // not inside
};

// The union of intervals added in order of start.
class IntervalUnion {
 public:
  void add(Nanos start, Nanos end) {
    if (end <= start) return;
    if (!parts_.empty() && start <= parts_.back().end) {
      if (end > parts_.back().end) parts_.back().end = end;
    } else {
      parts_.push_back({start, end});
    }
  }
  [[nodiscard]] const std::vector<Interval>& parts() const {
    return parts_;
  }  // disjoint, ascending
  [[nodiscard]] Nanos covered(Interval window) const;

 private:
  std::vector<Interval> parts_;
};

// Time inside `window` that lies in both.
[[nodiscard]] Nanos covered_by_both(const IntervalUnion& a, const IntervalUnion& b,
                                    Interval window);

}  // namespace rehearse::traces
