// SPDX-License-Identifier: Apache-2.0
#include "faults/diagnose/deviations.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "faults/diagnose/flight_entry.hpp"

namespace rehearse::faults {
namespace {

// A call as its group sees it: which, and elements of its inputs.
using RecordedCall = std::pair<std::string, int64_t>;

struct Recorded {
  uint32_t rank = 0;
  int64_t enqueued = -1;
  std::map<int64_t, std::pair<RecordedCall, int64_t>>
      calls;                        // by sequence; with the number of the record
  std::map<int64_t, bool> pending;  // by sequence: whether it runs
};

using RecordedGroups = std::map<std::string, std::vector<Recorded>>;

RecordedGroups recorded_groups(const pb::Outcome& run) {
  RecordedGroups out;
  for (const pb::FlightRecorder& recorder : run.flight_records()) {
    std::map<std::string, Recorded> own;
    for (const pb::FlightGroup& group : recorder.groups()) {
      if (group.ranks_size() < 2) continue;
      own[group.name()] = {recorder.rank(), group.last_enqueued(), {}, {}};
    }
    for (const pb::FlightEntry& entry : recorder.entries()) {
      const auto group = own.find(entry.group_name());
      if (group == own.end() || entry.p2p()) continue;
      group->second.calls[entry.collective_seq()] = {
          {entry.collective(), elements_of(entry.inputs())}, entry.record_id()};
      if (is_pending(entry)) {
        group->second.pending[entry.collective_seq()] =
            entry.state() == "started" || entry.has_started_ns();
      }
    }
    for (auto& [name, recorded] : own) out[name].push_back(std::move(recorded));
  }
  return out;
}

template <typename T>
T most_common(const std::map<T, size_t>& times) {
  return std::max_element(times.begin(), times.end(),
                          [](const auto& a, const auto& b) { return a.second < b.second; })
      ->first;
}

std::map<int64_t, RecordedCall> usual_calls(const std::vector<Recorded>& members) {
  std::map<int64_t, std::map<RecordedCall, size_t>> times;
  for (const Recorded& member : members) {
    for (const auto& [sequence, call] : member.calls) ++times[sequence][call.first];
  }
  std::map<int64_t, RecordedCall> out;
  for (const auto& [sequence, calls] : times) out[sequence] = most_common(calls);
  return out;
}

// The call that most members have not ended, and whether most of those that have it run it; nothing: none is pending.
struct Stuck {
  int64_t sequence = 0;
  bool runs = false;
};
std::optional<Stuck> stuck_in(const std::vector<Recorded>& members) {
  std::map<int64_t, size_t> firsts;
  for (const Recorded& member : members) {
    if (!member.pending.empty()) ++firsts[member.pending.begin()->first];
  }
  if (firsts.empty()) return std::nullopt;
  Stuck out{most_common(firsts)};
  size_t there = 0, running = 0;
  for (const Recorded& member : members) {
    const auto own = member.pending.find(out.sequence);
    if (own == member.pending.end()) continue;
    ++there;
    running += own->second ? 1 : 0;
  }
  out.runs = 2 * running > there;
  return out;
}

}  // namespace

std::vector<Deviation> deviations(const pb::Outcome& run) {
  std::vector<Deviation> out;
  for (const auto& [name, members] : recorded_groups(run)) {
    const auto usual = usual_calls(members);
    std::map<int64_t, size_t> lasts;
    for (const Recorded& member : members) ++lasts[member.enqueued];
    const int64_t last = most_common(lasts);
    const auto stuck = stuck_in(members);
    for (const Recorded& member : members) {
      Deviation& row = out.emplace_back();
      row.rank = member.rank;
      row.group = name;
      row.ahead = static_cast<int>(member.enqueued - last);
      if (const auto own = stuck ? member.pending.find(stuck->sequence) : member.pending.end();
          own != member.pending.end()) {
        row.running = (own->second ? 1 : 0) - (stuck->runs ? 1 : 0);
      }
      for (const auto& [sequence, call] : member.calls) {
        const RecordedCall& expected = usual.at(sequence);
        if (call.first == expected) continue;
        if (row.others++ > 0) continue;
        row.sequence = sequence;
        // What was slipped in may have been put into its queue at any time; the call before it was in its turn.
        const auto before = member.calls.find(sequence - 1);
        row.nth = before == member.calls.end() ? call.second : before->second.second + 1;
        if (call.first.second > 0 && expected.second > 0) {
          row.size = std::log(static_cast<double>(call.first.second) /
                              static_cast<double>(expected.second));
        }
      }
    }
  }
  return out;
}

std::optional<Deviation> most_deviating(const pb::Outcome& run) {
  std::optional<Deviation> most;
  for (const Deviation& row : deviations(run)) {
    if (row.others > 0 && (!most || row.others > most->others)) most = row;
  }
  return most;
}

}  // namespace rehearse::faults
