// SPDX-License-Identifier: Apache-2.0
#include "sim/outcome/overview.hpp"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "base/units.hpp"
#include "sim/outcome/lane_rows.hpp"

namespace rehearse::sim {
namespace {

bool is_host(const pb::LaneTimeline& lane) { return lane.name().starts_with("thread "); }

template <typename See>
void merge_lane(const pb::LaneTimeline& lane, Nanos resolution, const See& see) {
  RowMerger merger(resolution, see);
  each_row(lane, [&](const LaneRow& row) { merger.add(row); });
  merger.finish();
}

using Lanes = std::vector<const pb::LaneTimeline*>;

size_t entries_at(const Lanes& lanes, Nanos resolution) {
  size_t n = 0;
  for (const pb::LaneTimeline* lane : lanes) {
    merge_lane(*lane, resolution, [&](const LaneRow&) { ++n; });
  }
  return n;
}

// The smallest resolution, of powers of 1.4, at which the lanes fit.
Nanos resolution_for(const Lanes& lanes, size_t most, Nanos length) {
  size_t rows = 0;
  for (const pb::LaneTimeline* lane : lanes) rows += static_cast<size_t>(lane->start_size());
  if (rows <= most) return 0;
  Nanos resolution = std::max<Nanos>(
      100, static_cast<Nanos>(static_cast<double>(length) * static_cast<double>(lanes.size()) /
                              static_cast<double>(most) / 8));
  while (resolution < length && entries_at(lanes, resolution) > most) {
    resolution = resolution * 7 / 5;
  }
  return resolution;
}

// Calls that entries still refer to, numbered anew.
class CallsKept {
 public:
  explicit CallsKept(const pb::Timeline& whole, pb::Timeline& out) : whole_(whole), out_(out) {}
  uint32_t number(uint32_t call) {
    const auto [at, fresh] = numbers_.emplace(call, static_cast<uint32_t>(numbers_.size()));
    if (fresh) *out_.add_calls() = whole_.calls(static_cast<int>(call));
    return at->second;
  }

 private:
  const pb::Timeline& whole_;
  pb::Timeline& out_;
  std::unordered_map<uint32_t, uint32_t> numbers_;
};

void write_lane(const pb::LaneTimeline& lane, Nanos resolution, CallsKept& calls,
                pb::LaneTimeline& out) {
  LaneWriter writer(out, resolution > 0 || lane.count_size() > 0);
  merge_lane(lane, resolution, [&](LaneRow row) {
    if (row.call != kNoTimelineCall) row.call = calls.number(row.call);
    writer.add(row);
  });
  out.set_resolution_ns(std::max(resolution, lane.resolution_ns()));
}

void merge_path(const pb::Timeline& whole, size_t most, Nanos length, pb::Timeline& out) {
  const auto parts = static_cast<size_t>(whole.critical_path_size());
  // Stretches of one rank's lane that are shorter together than what can be seen become one.
  const Nanos resolution =
      parts <= most ? 0 : length / static_cast<Nanos>(std::max<size_t>(1, most));
  Nanos longest = 0;
  for (const pb::PathPart& part : whole.critical_path()) {
    pb::PathPart* last = out.critical_path_size() > 0
                             ? out.mutable_critical_path(out.critical_path_size() - 1)
                             : nullptr;
    const Nanos own = part.to_ns() - part.from_ns();
    if (last != nullptr && last->rank() == part.rank() &&
        part.to_ns() - last->from_ns() <= resolution) {
      last->set_to_ns(part.to_ns());
      if (own > longest) {
        longest = own;
        last->set_name_id(part.name_id());
        last->set_lane(part.lane());
      }
      continue;
    }
    *out.add_critical_path() = part;
    longest = own;
  }
}

// The end of the last entry.
Nanos length_of(const pb::Timeline& whole) {
  Nanos length = 1;
  for (const pb::RankTimeline& rank : whole.ranks()) {
    for (const pb::LaneTimeline& lane : rank.lanes()) {
      Nanos at = 0;
      for (int i = 0; i < lane.start_size(); ++i) at += lane.start(i);
      if (lane.start_size() > 0)
        length = std::max(length, at + lane.duration(lane.duration_size() - 1));
    }
  }
  return length;
}

}  // namespace

pb::Timeline overview(const pb::Timeline& whole, const OverviewOptions& options) {
  const Nanos length = length_of(whole);
  const std::set<uint32_t> chosen(options.in_detail.begin(), options.in_detail.end());
  Lanes detailed, others, all;
  for (const pb::RankTimeline& rank : whole.ranks()) {
    const bool in_detail = chosen.contains(rank.rank());
    for (const pb::LaneTimeline& lane : rank.lanes()) {
      all.push_back(&lane);
      if (in_detail) {
        detailed.push_back(&lane);
      } else if (!is_host(lane)) {
        others.push_back(&lane);
      }
    }
  }
  const bool fits = resolution_for(all, options.entries, length) == 0;
  const Nanos fine = fits ? 0 : resolution_for(detailed, options.entries / 2, length);
  // Never finer than those that were asked for, whose host threads take room too.
  const Nanos coarse =
      fits ? 0 : std::max(fine, resolution_for(others, options.entries / 2, length));
  pb::Timeline out;
  out.set_schema(whole.schema());
  *out.mutable_names() = whole.names();
  *out.mutable_kinds() = whole.kinds();
  CallsKept calls(whole, out);
  for (const pb::RankTimeline& rank : whole.ranks()) {
    pb::RankTimeline& row = *out.add_ranks();
    row.set_rank(rank.rank());
    const bool in_detail = chosen.contains(rank.rank());
    for (const pb::LaneTimeline& lane : rank.lanes()) {
      pb::LaneTimeline& kept = *row.add_lanes();
      kept.set_name(lane.name());
      if (!fits && !in_detail && is_host(lane)) {
        kept.set_resolution_ns(length);
        continue;
      }
      write_lane(lane, in_detail ? fine : coarse, calls, kept);
      if (!lane.has_open()) continue;
      *kept.mutable_open() = lane.open();
      if (lane.open().has_call()) kept.mutable_open()->set_call(calls.number(lane.open().call()));
    }
  }
  merge_path(whole, options.entries / 20, length, out);
  return out;
}

std::vector<uint32_t> ranks_of_interest(const pb::Outcome& outcome, size_t most) {
  std::vector<uint32_t> wanted;
  for (const pb::Culprit& culprit : outcome.culprits()) {
    if (culprit.has_rank()) wanted.push_back(culprit.rank());
  }
  if (outcome.has_first_failure()) wanted.push_back(outcome.first_failure().rank());
  if (!outcome.breakdown().empty()) {
    const auto [least, longest] =
        std::minmax_element(outcome.breakdown().begin(), outcome.breakdown().end(),
                            [](const auto& a, const auto& b) { return a.wait() < b.wait(); });
    wanted.push_back(least->rank());
    wanted.push_back(longest->rank());
  }
  wanted.push_back(0);
  for (const pb::Blame& row : outcome.critical_path().ranks()) {
    if (row.name().starts_with("rank ")) {
      wanted.push_back(static_cast<uint32_t>(std::strtoul(row.name().c_str() + 5, nullptr, 10)));
    }
  }
  for (uint32_t rank = 1; rank < outcome.ranks(); rank *= 2) wanted.push_back(rank);
  std::set<uint32_t> out;
  for (const uint32_t rank : wanted) {
    if (out.size() >= most) break;
    if (rank < outcome.ranks()) out.insert(rank);
  }
  return {out.begin(), out.end()};
}

}  // namespace rehearse::sim
