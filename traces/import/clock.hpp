// SPDX-License-Identifier: Apache-2.0
// Clocks of different hosts, aligned on what ranks experience together: all-reduce, all-gather,
// reduce-scatter and barrier end on all ranks within microseconds, however late a rank arrived and
// however uneven the work was. Per clock (a host, or a rank whose host is not known) an offset and,
// when the ends show one, a drift. Fitted pair by pair along a spanning tree of shared collectives
// with medians, then refined against the common ends, and checked on collectives that the fit has
// not seen, where it can do without.
#pragma once

#include <vector>

#include "base/finding.hpp"
#include "traces/model/trace.hpp"

namespace rehearse::traces {

struct ClockFit {
  bool aligned = false;       // times were changed
  size_t collectives = 0;     // matched across ranks and used
  Nanos residual_before = 0;  // 95th percentile of the distance to the common end
  Nanos residual = 0;         // the same after, on held-out collectives
  std::vector<Nanos> offset;  // per entry of trace.ranks, at the middle of the recording
  std::vector<double> drift;  // per entry of trace.ranks, seconds per second
};

// Calls must have their communicator and sequence. Clocks that already agree within 20 us are left
// alone. Sets RankTrace::clock_offset (already added to the times) and header.clock_residual.
ClockFit align_clocks(Trace& trace, Findings& findings);

}  // namespace rehearse::traces
