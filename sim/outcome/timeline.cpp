// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include "sim/outcome/outcome.hpp"
#include "traces/model/utf8.hpp"

namespace rehearse::sim {
namespace {

using traces::kNoCall;
using traces::RankProgram;

std::string lane_name(const Evidence& evidence, const traces::Lane& lane) {
  const std::string& name = evidence.names.at(lane.name);
  const char* kind = lane.kind == traces::LaneKind::kStream       ? "stream "
                     : lane.kind == traces::LaneKind::kHostThread ? "thread "
                                                                  : "proxy ";
  return kind + std::to_string(lane.id) + (name.empty() ? "" : " " + name);
}

void fill_lane(const Evidence& evidence, size_t r, traces::LaneId l,
               std::map<uint32_t, uint32_t>& ids, pb::LaneTimeline& out) {
  const RankProgram& rank = evidence.program.ranks[r];
  const std::vector<Nanos>& end = evidence.replayed.end[r];
  out.set_name(lane_name(evidence, rank.lanes[l]));
  Nanos free = rank.begin, before = 0;
  for (OpId op = rank.lane_begin[l]; op < rank.lane_begin[l + 1] && end[op] >= 0; ++op) {
    Nanos start = free;
    if (rank.call[op] != kNoCall) {
      start = evidence.replayed.arrival[r][rank.call[op]];
    } else {
      for (OpId from : rank.predecessors(op)) start = std::max(start, end[from]);
      start = std::min(start + rank.gap[op], end[op]);
    }
    free = std::max(free, end[op]);
    out.add_start(start - before);
    out.add_duration(end[op] - start);
    out.add_name_id(ids.emplace(rank.name[op], static_cast<uint32_t>(ids.size())).first->second);
    before = start;
  }
}

}  // namespace

void fill_timeline(const Evidence& evidence, pb::Timeline& out) {
  out.set_schema("rehearse.timeline/1");
  std::map<uint32_t, uint32_t> ids;  // string id -> index of names
  for (size_t r = 0; r < evidence.program.ranks.size(); ++r) {
    pb::RankTimeline& row = *out.add_ranks();
    row.set_rank(evidence.program.ranks[r].rank);
    for (traces::LaneId l = 0; l < evidence.program.ranks[r].lanes.size(); ++l) {
      fill_lane(evidence, r, l, ids, *row.add_lanes());
    }
  }
  std::vector<std::string> names(ids.size());
  for (const auto& [string, id] : ids) names[id] = evidence.names.at(string);
  for (const std::string& name : names) out.add_names(traces::to_utf8(name));
}

}  // namespace rehearse::sim
