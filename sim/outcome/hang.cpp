// SPDX-License-Identifier: Apache-2.0
// A run has stopped when no lane can go on and no flow moves. Every rank that sits in a call waits
// for the members that are not there. To blame are, in this order:
//   1. ranks that have stopped, as far as somebody waits for them;
//   2. members whose program holds no such call, or fewer calls on that communicator than the
//      others (they have skipped one and are out of step): they would never have come in time;
//   3. members that disagree with the others about type or size;
//   4. links that are down under a call whose members are all there, or under a transfer of a rank;
//   5. else those that close a circle of waits (stuck.hpp).
// Ranks that merely wait for those are victims.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "base/text.hpp"
#include "sim/outcome/link_traffic.hpp"
#include "sim/outcome/outcome.hpp"
#include "sim/outcome/stuck.hpp"

namespace rehearse::sim {
namespace {

using traces::RankId;
using traces::RankProgram;

int64_t calls_on(const RankProgram& rank, uint32_t communicator) {
  return std::count_if(rank.calls.begin(), rank.calls.end(), [&](const traces::Call& call) {
    return call.communicator == communicator && !traces::is_point_to_point(call.collective);
  });
}

// Missing members that issue fewer calls on the communicator than any that is there.
std::vector<uint32_t> out_of_step(const Evidence& evidence, const Stuck& stuck) {
  const Meeting& meeting = evidence.replayed.meetings[stuck.meeting];
  if (traces::is_point_to_point(meeting.call.collective)) return {};
  int64_t least = std::numeric_limits<int64_t>::max();
  for (uint32_t r : stuck.present) {
    least = std::min(least, calls_on(evidence.program.ranks[r], meeting.communicator));
  }
  std::vector<uint32_t> out;
  for (uint32_t r : stuck.coming) {
    if (calls_on(evidence.program.ranks[r], meeting.communicator) < least) out.push_back(r);
  }
  return out;
}

// Who of those that disagree is wrong: the ones that issue fewer or more calls on the communicator than most,
// else all but the first party; where settings make them plan a call differently, the fewer ranks.
std::vector<uint32_t> dissenters(const Evidence& evidence, const Stuck& stuck) {
  const Replayed::Shape& shape =
      evidence.replayed.shapes[evidence.replayed.shape_of[stuck.meeting]];
  if (!shape.dissent.empty()) {
    std::vector<uint32_t> others, rest;
    for (uint32_t r : stuck.present) {
      const bool other = std::binary_search(shape.dissenters.begin(), shape.dissenters.end(),
                                            evidence.program.ranks[r].rank);
      (other ? others : rest).push_back(r);
    }
    return others.size() <= rest.size() ? others : rest;
  }
  const uint32_t communicator = evidence.replayed.meetings[stuck.meeting].communicator;
  std::map<int64_t, size_t> ranks_by_calls;
  for (uint32_t r : stuck.present)
    ++ranks_by_calls[calls_on(evidence.program.ranks[r], communicator)];
  int64_t usual = 0;
  size_t most = 0;
  for (const auto& [calls, ranks] : ranks_by_calls) {
    if (ranks < most) continue;  // as many: rather the one that issues more calls
    most = ranks;
    usual = calls;
  }
  std::vector<uint32_t> odd;
  for (uint32_t r : stuck.present) {
    if (calls_on(evidence.program.ranks[r], communicator) != usual) odd.push_back(r);
  }
  if (!odd.empty()) return odd;
  const auto opinions = parties(evidence, stuck.meeting);
  std::vector<uint32_t> out;
  for (size_t party = 1; party < opinions.size(); ++party) {
    for (uint32_t i : opinions[party]) {
      const uint32_t r = evidence.replayed.calls_of[i].rank;
      if (stuck.calls.contains(r)) out.push_back(r);
    }
  }
  std::sort(out.begin(), out.end());
  return out.empty() ? stuck.present : out;
}

// Whom a rank waits for when members disagree: those of the other opinion.
std::vector<uint32_t> other_party(const Stuck& stuck, const std::vector<uint32_t>& wrong,
                                  uint32_t rank) {
  if (std::find(wrong.begin(), wrong.end(), rank) == wrong.end()) return wrong;
  std::vector<uint32_t> out;
  for (uint32_t r : stuck.present) {
    if (std::find(wrong.begin(), wrong.end(), r) == wrong.end()) out.push_back(r);
  }
  return out;
}

void add_wait(const Evidence& evidence, const Stuck& stuck, uint32_t r,
              const std::vector<uint32_t>& wanted, pb::Outcome& out) {
  const Meeting& meeting = evidence.replayed.meetings[stuck.meeting];
  const traces::Call& call = stuck.calls.at(r);
  const int64_t element = std::max(1, traces::size_of(call.dtype));
  pb::Wait& wait = *out.add_waits();
  wait.set_rank(evidence.program.ranks[r].rank);
  for (uint32_t m : wanted) wait.add_for_ranks(evidence.program.ranks[m].rank);
  wait.set_communicator(evidence.program.communicators[meeting.communicator].id);
  wait.set_sequence(meeting.sequence);
  wait.set_operation(name_of(call.collective));
  wait.set_since_ns(meeting.first_arrival);
  wait.set_elements_in(call.bytes_in / element);
  wait.set_elements_out(call.bytes_out / element);
}

// Copies and storage that stand on a link that does not come back.
void add_stuck_transfers(const Evidence& evidence, std::map<std::string, std::string>& links) {
  const Replayed& replayed = evidence.replayed;
  for (size_t r = 0; r < replayed.transfer_begin.size(); ++r) {
    const RankProgram& rank = evidence.program.ranks[r];
    for (size_t i = 0; i < replayed.transfer_begin[r].size(); ++i) {
      const traces::Transfer& transfer = rank.transfers[i];
      if (replayed.transfer_begin[r][i] < 0 || replayed.end[r][transfer.op] >= 0) continue;
      const ShapeLoad load = transfer_load(evidence, r, transfer);
      for (const Outage& outage : evidence.schedule.outages) {
        if (outage.until != Outage::kForever || !(load.on(outage.link) > 0)) continue;
        links.emplace(
            evidence.links[outage.link].name,
            fmt::format("is down under a {} of rank {}", name_of(transfer.way), rank.rank));
      }
    }
  }
}

}  // namespace

Nanos last_progress(const Evidence& evidence) {
  const Replayed& replayed = evidence.replayed;
  Nanos latest = 0;
  for (const auto& ends : replayed.end) {
    for (OpId op = 0; op < ends.size(); ++op) latest = std::max(latest, ends[op]);
  }
  for (const auto& arrivals : replayed.arrival) {
    for (Nanos arrival : arrivals) latest = std::max(latest, arrival);
  }
  if (evidence.schedule.outages.empty()) return latest;
  // A transfer moved until its link went down.
  const std::vector<ShapeLoad> loads = shape_loads(evidence);
  for (size_t id = 0; id < replayed.meetings.size(); ++id) {
    const Meeting& meeting = replayed.meetings[id];
    if (meeting.end >= 0 || meeting.arrived == 0 || meeting.arrived < meeting.expected) continue;
    const ShapeLoad& load = loads[replayed.shape_of[id]];
    Nanos stood = Outage::kForever;
    for (const Outage& outage : evidence.schedule.outages) {
      if (outage.until != Outage::kForever || !(load.on(outage.link) > 0)) continue;
      stood = std::min(stood, std::max(outage.from, meeting.last_arrival + load.latency));
    }
    if (stood != Outage::kForever) latest = std::max(latest, stood);
  }
  return latest;
}

void fill_hang(const Evidence& evidence, pb::Outcome& out) {
  const Replayed& replayed = evidence.replayed;
  const std::vector<Stuck> all = find_stuck(evidence);
  std::map<uint32_t, const StoppedRank*> stopped;  // by position
  for (const StoppedRank& rank : evidence.schedule.stopped) {
    if (const int r = evidence.program.find(rank.rank); r >= 0)
      stopped[static_cast<uint32_t>(r)] = &rank;
  }
  std::map<RankId, std::string> blamed;
  std::map<std::string, std::string> links;
  std::vector<std::set<uint32_t>> waits_for(evidence.program.ranks.size());
  for (const Stuck& stuck : all) {
    const Meeting& meeting = replayed.meetings[stuck.meeting];
    const std::string what = describe_meeting(evidence, meeting);
    std::vector<uint32_t> missing = stuck.coming;
    missing.insert(missing.end(), stuck.never.begin(), stuck.never.end());
    std::sort(missing.begin(), missing.end());
    // All have come and one of them is no more: that one is what the call waits for.
    if (missing.empty()) {
      for (uint32_t r : stuck.present) {
        if (stopped.count(r) > 0) missing.push_back(r);
      }
    }
    const std::vector<uint32_t> wrong =
        meeting.mismatch ? dissenters(evidence, stuck) : std::vector<uint32_t>{};
    for (uint32_t r : stuck.present) {
      if (stopped.count(r) > 0) continue;  // it waits for nothing any more
      const std::vector<uint32_t> wanted =
          meeting.mismatch ? other_party(stuck, wrong, r) : missing;
      add_wait(evidence, stuck, r, wanted, out);
      waits_for[r].insert(wanted.begin(), wanted.end());
    }
    for (uint32_t r : missing) {
      if (const auto at = stopped.find(r); at != stopped.end()) {
        out.set_last_progress_ns(std::max(out.last_progress_ns(), at->second->at));
        blamed.emplace(evidence.program.ranks[r].rank,
                       fmt::format("stopped after {}; {} waits for it",
                                   format_duration(at->second->at), what));
      }
    }
    for (uint32_t r : stuck.never) {
      blamed.emplace(evidence.program.ranks[r].rank,
                     fmt::format("never issues {}; {} wait for it", what,
                                 counted_ranks(stuck.present.size())));
    }
    for (uint32_t r : out_of_step(evidence, stuck)) {
      blamed.emplace(
          evidence.program.ranks[r].rank,
          fmt::format("issues fewer calls on {} than its peers and is out of step; {} waits",
                      evidence.program.communicators[meeting.communicator].id, what));
    }
    const std::string& dissent = replayed.shapes[replayed.shape_of[stuck.meeting]].dissent;
    for (uint32_t r : wrong) {
      if (!dissent.empty()) {
        blamed.emplace(evidence.program.ranks[r].rank,
                       fmt::format("its NCCL settings plan {} differently: {}", what, dissent));
        continue;
      }
      const traces::Call& call = stuck.calls.at(r);
      blamed.emplace(evidence.program.ranks[r].rank,
                     fmt::format("comes to {} with {} of {} bytes; the others disagree", what,
                                 name_of(call.collective), call.bytes_in));
    }
    if (missing.empty() && !meeting.mismatch) {
      const LinkId link = LinkTraffic(evidence).bottleneck(replayed.shape_of[stuck.meeting],
                                                           meeting.last_arrival, kEndOfTime);
      if (link != platforms::kNoLink) {
        links.emplace(evidence.links[link].name, fmt::format("is down under {}", what));
      }
    }
  }
  add_stuck_transfers(evidence, links);
  if (blamed.empty() && links.empty()) blamed = blame_circle(evidence, all, waits_for);
  for (const auto& [rank, why] : blamed) {
    pb::Culprit& culprit = *out.add_culprits();
    culprit.set_kind("rank");
    culprit.set_rank(rank);
    culprit.set_why(why);
  }
  for (const auto& [link, why] : links) {
    pb::Culprit& culprit = *out.add_culprits();
    culprit.set_kind("link");
    culprit.set_link(link);
    culprit.set_why(why);
  }
  if (!all.empty()) fill_failure(evidence, all.front().meeting, out);
}

void fill_failure(const Evidence& evidence, uint32_t meeting, pb::Outcome& out) {
  const Meeting& first = evidence.replayed.meetings[meeting];
  pb::Failure& failure = *out.mutable_first_failure();
  failure.set_rank(evidence.program.ranks[first.first_arriver].rank);
  failure.set_time_ns(out.last_progress_ns());
  failure.set_communicator(evidence.program.communicators[first.communicator].id);
  failure.set_sequence(first.sequence);
  failure.set_operation(name_of(first.call.collective));
  failure.set_phase(pb::TRAINING);
}

}  // namespace rehearse::sim
