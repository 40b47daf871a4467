// SPDX-License-Identifier: Apache-2.0
// Who is waited for. In a synchronising collective every member waits for the last one; the
// lateness of the last is how long after the middle member (the lower median of arrivals) it came.
// A rank is named when the lateness it caused on a communicator is a noticeable part of the run and
// it caused most of what was lost there: always the same late rank is a straggler, taking turns is
// noise or input.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "sim/outcome/outcome.hpp"

namespace rehearse::sim {
namespace {

constexpr double kNoticeable = 0.05;  // of the time of all steps
constexpr double kMost = 0.5;         // of all lateness

struct Late {
  Nanos caused = 0;
  uint64_t times = 0;
};

bool synchronising(traces::Collective collective) {
  using traces::Collective;
  return collective == Collective::kAllReduce || collective == Collective::kAllGather ||
         collective == Collective::kReduceScatter || collective == Collective::kAllToAll ||
         collective == Collective::kBarrier;
}

}  // namespace

void fill_stragglers(const Evidence& evidence, const std::vector<Nanos>& ends, pb::Outcome& out) {
  if (ends.size() < 2) return;
  const Replayed& replayed = evidence.replayed;
  // Arrivals by meeting.
  std::vector<std::vector<Nanos>> arrivals(replayed.meetings.size());
  for (size_t r = 0; r < replayed.arrival.size(); ++r) {
    for (size_t c = 0; c < replayed.arrival[r].size(); ++c) {
      const uint32_t id = replayed.meeting_of[r][c];
      if (synchronising(replayed.meetings[id].call.collective)) {
        arrivals[id].push_back(replayed.arrival[r][c]);
      }
    }
  }
  std::map<uint32_t, Late> late;
  Nanos total = 0;
  uint64_t meetings = 0;
  for (size_t id = 0; id < arrivals.size(); ++id) {
    std::vector<Nanos>& at = arrivals[id];
    if (at.size() < 2) continue;
    const auto middle = at.begin() + static_cast<std::ptrdiff_t>((at.size() - 1) / 2);
    std::nth_element(at.begin(), middle, at.end());
    const Nanos lateness = replayed.meetings[id].last_arrival - *middle;
    Late& who = late[replayed.meetings[id].last_arriver];
    who.caused += lateness;
    ++who.times;
    total += lateness;
    ++meetings;
  }
  const auto span = static_cast<double>(ends.back() - ends.front());
  for (const auto& [r, who] : late) {
    const auto caused = static_cast<double>(who.caused);
    if (caused < kNoticeable * span || caused < kMost * static_cast<double>(total)) continue;
    pb::Culprit& culprit = *out.add_culprits();
    culprit.set_kind("rank");
    culprit.set_rank(evidence.program.ranks[r].rank);
    culprit.set_why(fmt::format(
        "last to arrive in {} of {} collectives; the others wait {} per step", who.times, meetings,
        format_duration(who.caused / static_cast<Nanos>(ends.size() - 1))));
  }
}

}  // namespace rehearse::sim
