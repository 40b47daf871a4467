// SPDX-License-Identifier: Apache-2.0
// The entries of a lane of a timeline one by one: read with differences undone, merged, written.
#pragma once

#include <algorithm>
#include <utility>

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

// Rows that together take no longer than the resolution become one, named by the longest of them. At most two entries
// per resolution come out. `See` is called with each, the last one by finish().
template <typename See>
class RowMerger {
 public:
  RowMerger(Nanos resolution, See see) : resolution_(resolution), see_(std::move(see)) {}

  void add(const LaneRow& row) {
    const Nanos end = row.start + row.duration;
    if (merged_.count > 0 && end - merged_.start > resolution_) finish();
    if (merged_.count == 0) {
      merged_ = {row.start, 0, row.name, row.call, 0, 0};
      longest_ = -1;
    } else {
      merged_.call = kNoTimelineCall;
    }
    merged_.duration = std::max(merged_.duration, end - merged_.start);
    merged_.busy += row.busy;
    merged_.count += row.count;
    if (row.duration > longest_) {
      longest_ = row.duration;
      merged_.name = row.name;
    }
  }
  void finish() {
    if (merged_.count > 0) see_(merged_);
    merged_.count = 0;
  }

 private:
  const Nanos resolution_;
  See see_;
  LaneRow merged_{0, 0, 0, kNoTimelineCall, 0, 0};
  Nanos longest_ = -1;
};

// Appends rows to a lane; `merged`: also how many operations each stands for and how long they ran.
class LaneWriter {
 public:
  LaneWriter(pb::LaneTimeline& lane, bool merged) : lane_(lane), merged_(merged) {}

  void reserve(size_t rows) {
    lane_.mutable_start()->Reserve(static_cast<int>(rows));
    lane_.mutable_duration()->Reserve(static_cast<int>(rows));
    lane_.mutable_name_id()->Reserve(static_cast<int>(rows));
  }

  void add(const LaneRow& row) {
    lane_.add_start(row.start - before_);
    lane_.add_duration(row.duration);
    lane_.add_name_id(row.name);
    before_ = row.start;
    if (merged_) {
      lane_.add_count(row.count);
      lane_.add_busy(row.busy);
    }
    if (row.call != kNoTimelineCall) {
      lane_.add_call_at(rows_ - call_before_);
      lane_.add_call(row.call);
      call_before_ = rows_;
    }
    ++rows_;
  }

 private:
  pb::LaneTimeline& lane_;
  const bool merged_;
  Nanos before_ = 0;
  uint32_t rows_ = 0, call_before_ = 0;
};

}  // namespace rehearse::sim
