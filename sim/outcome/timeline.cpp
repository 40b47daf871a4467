// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>

#include "sim/outcome/critical_path.hpp"
#include "sim/outcome/lane_rows.hpp"
#include "sim/outcome/outcome.hpp"
#include "traces/model/utf8.hpp"

namespace rehearse::sim {
namespace {

using traces::kNoCall;
using traces::OpKind;
using traces::RankProgram;

constexpr std::array<const char*, 7> kWorkNames = {"compute", "communication", "copy", "storage",
                                                   "host",    "launch",        "sync"};
enum Work : size_t {
  kWorkCompute,
  kWorkCall,
  kWorkCopy,
  kWorkStorage,
  kWorkHost,
  kWorkLaunch,
  kWorkSync
};

Work work_of(const RankProgram& rank, OpId op) {
  if (!rank.transfers.empty()) {
    const traces::Transfer* transfer = rank.transfer(op);
    if (transfer != nullptr && is_storage(transfer->way)) return kWorkStorage;
  }
  switch (rank.kind[op]) {
    case OpKind::kKernel:
    case OpKind::kMemset:
      return kWorkCompute;
    case OpKind::kCall:
      return kWorkCall;
    case OpKind::kCopy:
      return kWorkCopy;
    case OpKind::kLaunch:
    case OpKind::kGraphLaunch:
      return kWorkLaunch;
    case OpKind::kSync:
      return kWorkSync;
    case OpKind::kHost:
    case OpKind::kMemory:
    case OpKind::kAnnotation:
      return kWorkHost;
  }
  return kWorkHost;
}

// Numbers of names in order of their first use.
class TimelineNames {
 public:
  uint32_t id(uint32_t name, Work work) {
    auto& row = ids_[work];
    if (row.size() <= name) row.resize(name + 1, UINT32_MAX);
    if (row[name] == UINT32_MAX) {
      row[name] = static_cast<uint32_t>(used_.size());
      used_.emplace_back(name, work);
    }
    return row[name];
  }
  void fill(const traces::Strings& names, pb::Timeline& out) const {
    for (const auto& [name, work] : used_) {
      out.add_names(traces::to_utf8(names.at(name)));
      out.add_kinds(kWorkNames[work]);
    }
  }

 private:
  std::array<std::vector<uint32_t>, kWorkNames.size()> ids_;  // by string id
  std::vector<std::pair<uint32_t, Work>> used_;
};

// Calls that rows refer to, by meeting, in order of their first use; all of them where nothing is merged.
class TimelineCalls {
 public:
  TimelineCalls(const Evidence& evidence, Nanos resolution, pb::Timeline& out)
      : evidence_(evidence), out_(out) {
    const size_t meetings = evidence.replayed.meetings.size();
    if (resolution > 0) {
      numbers_.assign(meetings, kNoTimelineCall);
    } else {
      for (uint32_t id = 0; id < meetings; ++id) add(id);
    }
  }
  uint32_t number(uint32_t meeting) {
    if (numbers_.empty()) return meeting;
    if (numbers_[meeting] == kNoTimelineCall) {
      numbers_[meeting] = static_cast<uint32_t>(out_.calls_size());
      add(meeting);
    }
    return numbers_[meeting];
  }

 private:
  void add(uint32_t id) {
    const Replayed& replayed = evidence_.replayed;
    const Meeting& meeting = replayed.meetings[id];
    pb::TimelineCall& row = *out_.add_calls();
    row.set_communicator(traces::to_utf8(evidence_.program.communicators[meeting.communicator].id));
    row.set_sequence(meeting.sequence);
    row.set_operation(name_of(meeting.call.collective));
    row.set_first_arrival_ns(meeting.first_arrival);
    row.set_last_arrival_ns(meeting.last_arrival);
    row.set_end_ns(meeting.end);
    if (meeting.last_arriver != UINT32_MAX) {
      row.set_last_rank(evidence_.program.ranks[meeting.last_arriver].rank);
    }
    if (const uint32_t shape = replayed.shape_of[id]; shape != UINT32_MAX) {
      row.set_algorithm(replayed.shapes[shape].algorithm);
      row.set_bytes(static_cast<Bytes>(replayed.shapes[shape].bytes));
    }
  }

  const Evidence& evidence_;
  pb::Timeline& out_;
  std::vector<uint32_t> numbers_;  // by meeting; empty: as they are
};

struct LaneAt {
  size_t rank = 0;  // position
  traces::LaneId lane = 0;
};

void fill_lane(const Evidence& evidence, LaneAt at, Nanos resolution, TimelineNames& names,
               TimelineCalls& calls, pb::LaneTimeline& out) {
  const auto [r, l] = at;
  const RankProgram& rank = evidence.program.ranks[r];
  const OpTimes& end = evidence.replayed.end[r];
  out.set_name(lane_name(evidence, rank.lanes[l]));
  if (resolution > 0) out.set_resolution_ns(resolution);
  LaneWriter writer(out, resolution > 0);
  if (resolution == 0) writer.reserve(rank.lane_begin[l + 1] - rank.lane_begin[l]);
  RowMerger merger(resolution, [&](LaneRow row) {
    if (row.call != kNoTimelineCall) row.call = calls.number(row.call);
    writer.add(row);
  });
  Nanos free = rank.begin;
  OpId op = rank.lane_begin[l];
  for (; op < rank.lane_begin[l + 1] && end[op] >= 0; ++op) {
    Nanos start = free;
    uint32_t call = kNoTimelineCall;
    if (rank.call[op] != kNoCall) {
      start = evidence.replayed.arrival[r][rank.call[op]];
      call = evidence.replayed.meeting_of[r][rank.call[op]];
    } else {
      for (OpId from : rank.predecessors(op)) start = std::max(start, end[from]);
      start = std::min(start + rank.gap[op], end[op]);
    }
    free = std::max(free, end[op]);
    const Nanos duration = end[op] - start;
    const LaneRow row{start, duration, names.id(rank.name[op], work_of(rank, op)),
                      call,  1,        duration};
    if (resolution > 0) {
      merger.add(row);
    } else {
      writer.add(row);
    }
  }
  merger.finish();
  if (op == rank.lane_begin[l + 1] || rank.call[op] == kNoCall) return;
  const Nanos arrived = evidence.replayed.arrival[r][rank.call[op]];
  if (arrived < 0) return;
  out.mutable_open()->set_start_ns(arrived);
  out.mutable_open()->set_name_id(names.id(rank.name[op], work_of(rank, op)));
  out.mutable_open()->set_call(calls.number(evidence.replayed.meeting_of[r][rank.call[op]]));
}

void fill_path(const Evidence& evidence, TimelineNames& names, pb::Timeline& out) {
  walk_critical_path(evidence, [&](const PathStretch& part) {
    if (part.to <= part.from) return;
    const RankProgram& rank = evidence.program.ranks[part.rank];
    pb::PathPart& row = *out.add_critical_path();
    row.set_rank(rank.rank);
    row.set_lane(rank.lane_of(part.op));
    row.set_from_ns(part.from);
    row.set_to_ns(part.to);
    row.set_name_id(names.id(rank.name[part.op], work_of(rank, part.op)));
  });
  std::reverse(out.mutable_critical_path()->begin(), out.mutable_critical_path()->end());
}

}  // namespace

std::string lane_name(const Evidence& evidence, const traces::Lane& lane) {
  const std::string& name = evidence.names.at(lane.name);
  const char* kind = lane.kind == traces::LaneKind::kStream       ? "stream "
                     : lane.kind == traces::LaneKind::kHostThread ? "thread "
                                                                  : "proxy ";
  return kind + std::to_string(lane.id) + (name.empty() ? "" : " " + name);
}

void fill_timeline(const Evidence& evidence, Nanos resolution, pb::Timeline& out) {
  out.set_schema("rehearse.timeline/1");
  TimelineNames names;
  TimelineCalls calls(evidence, resolution, out);
  for (size_t r = 0; r < evidence.program.ranks.size(); ++r) {
    pb::RankTimeline& row = *out.add_ranks();
    row.set_rank(evidence.program.ranks[r].rank);
    for (traces::LaneId l = 0; l < evidence.program.ranks[r].lanes.size(); ++l) {
      fill_lane(evidence, {r, l}, resolution, names, calls, *row.add_lanes());
    }
  }
  if (evidence.replayed.completed) fill_path(evidence, names, out);
  names.fill(evidence.names, out);
}

Nanos resolution_of(const Evidence& evidence, size_t most) {
  if (evidence.program.operations() <= most) return 0;
  size_t lanes = 0;
  for (const RankProgram& rank : evidence.program.ranks) lanes += rank.lanes.size();
  // Two entries per resolution and lane at most.
  const double entries = 2.0 * static_cast<double>(lanes) / static_cast<double>(most);
  return std::max<Nanos>(
      1, static_cast<Nanos>(std::ceil(static_cast<double>(evidence.replayed.end_time) * entries)));
}

}  // namespace rehearse::sim
