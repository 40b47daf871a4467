// SPDX-License-Identifier: Apache-2.0
// The entries of a lane of a timeline one by one, differences undone.
#pragma once

#include <algorithm>

#include "base/units.hpp"
#include "sim/proto/outcome.pb.h"

namespace rehearse::sim {

constexpr uint32_t kNoTimelineCall = UINT32_MAX;

struct LaneRow {
  Nanos start = 0;
  Nanos duration = 0;
  uint32_t name = 0;                // index into Timeline.names
  uint32_t call = kNoTimelineCall;  // index into Timeline.calls
  uint32_t count = 1;               // operations it stands for
  Nanos busy = 0;                   // that they ran
};

// Columns of unequal length end with the shortest.
template <typename See>
void each_row(const pb::LaneTimeline& lane, const See& see) {
  const int rows = std::min({lane.start_size(), lane.duration_size(), lane.name_id_size()});
  const int calls = std::min(lane.call_at_size(), lane.call_size());
  Nanos at = 0;
  int next = 0;
  uint64_t call_row = calls > 0 ? lane.call_at(0) : UINT64_MAX;
  for (int i = 0; i < rows; ++i) {
    at += lane.start(i);
    LaneRow row{at, lane.duration(i), lane.name_id(i), kNoTimelineCall, 1, lane.duration(i)};
    if (i < lane.count_size()) row.count = lane.count(i);
    if (i < lane.busy_size()) row.busy = lane.busy(i);
    if (static_cast<uint64_t>(i) == call_row) {
      row.call = lane.call(next);
      ++next;
      call_row = next < calls ? call_row + lane.call_at(next) : UINT64_MAX;
    }
    see(row);
  }
}

}  // namespace rehearse::sim
