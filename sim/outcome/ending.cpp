// SPDX-License-Identifier: Apache-2.0
// How a run ended. A run in which something still moves when a timer gives it up has crashed; so has one whose
// transport or launcher reports an error. A run in which nothing moves and only watchdogs are pending hangs, and the
// timers say what they would print and when.
#include <fmt/format.h>

#include <algorithm>

#include "sim/outcome/expiry.hpp"
#include "sim/outcome/link_traffic.hpp"
#include "sim/outcome/stuck.hpp"

namespace rehearse::sim {
namespace {

using traces::RankProgram;

constexpr Nanos kTogether = 1'000'000'000;  // ranks that give up within a second print too

bool only_watches(const Expiry& expiry) {
  return expiry.timer == "watchdog" || expiry.timer == "heartbeat" || expiry.timer == "stall-check";
}

void add_timer(const Evidence& evidence, const Expiry& expiry, pb::Outcome& out) {
  pb::TimerEvent& row = *out.add_timers();
  row.set_time_ns(expiry.time);
  row.set_rank(evidence.program.ranks[expiry.rank].rank);
  row.set_timer(expiry.timer);
  row.set_text(expiry.text);
  row.set_action(expiry.action);
}

void add_text(const Evidence& evidence, const Expiry& expiry, pb::Outcome& out) {
  pb::ErrorText& error = *out.add_error_text();
  error.set_rank(evidence.program.ranks[expiry.rank].rank);
  error.set_text(expiry.text);
}

// Why a rank was not further at `when`: it worked itself, it waited for another, or a call of its moved data.
struct Root {
  uint32_t rank = 0;
  uint32_t moving = UINT32_MAX;  // meeting whose data moved
};

Root root_of(const Evidence& evidence, uint32_t rank, Nanos when) {
  const Replayed& replayed = evidence.replayed;
  for (size_t hops = 0; hops <= evidence.program.ranks.size(); ++hops) {
    const RankProgram& program = evidence.program.ranks[rank];
    uint32_t next = UINT32_MAX;
    for (size_t c = 0; c < program.calls.size(); ++c) {
      const Nanos arrival = replayed.arrival[rank][c];
      const Nanos end = replayed.end[rank][program.call_op[c]];
      if (arrival < 0 || arrival > when || (end >= 0 && end <= when)) continue;
      const uint32_t id = replayed.meeting_of[rank][c];
      const Meeting& meeting = replayed.meetings[id];
      if (meeting.last_arrival <= when && meeting.arrived >= meeting.expected) return {rank, id};
      if (meeting.last_arriver != rank) next = meeting.last_arriver;
    }
    if (next == UINT32_MAX) break;
    rank = next;
  }
  return {rank};
}

void blame_rank(const Evidence& evidence, uint32_t rank, const std::string& why, pb::Outcome& out) {
  pb::Culprit& culprit = *out.add_culprits();
  culprit.set_kind("rank");
  culprit.set_rank(evidence.program.ranks[rank].rank);
  culprit.set_why(why);
}

void blame_link(const Evidence& evidence, LinkId link, const std::string& why, pb::Outcome& out) {
  pb::Culprit& culprit = *out.add_culprits();
  culprit.set_kind("link");
  culprit.set_link(evidence.links[link].name);
  culprit.set_why(why);
}

// All that died together: the processes of a node that fails go at once.
void blame_dead(const Evidence& evidence, const std::vector<Expiry>& timers, const Expiry& fatal,
                pb::Outcome& out) {
  for (const Expiry& expiry : timers) {
    if (expiry.timer != "launcher" || expiry.time > fatal.time + kTogether) continue;
    blame_rank(evidence, expiry.rank, "died; the launcher then ended the job", out);
  }
}

void blame(const Evidence& evidence, const std::vector<Expiry>& timers, const Expiry& fatal,
           pb::Outcome& out) {
  if (fatal.timer == "launcher") return blame_dead(evidence, timers, fatal, out);
  if (fatal.timer == "memory") {
    return blame_rank(evidence, fatal.rank, "its GPU has not enough memory", out);
  }
  const std::string what = describe_meeting(evidence, evidence.replayed.meetings[fatal.meeting]);
  if (fatal.link != platforms::kNoLink) {
    return blame_link(evidence, fatal.link, fmt::format("was down under {}", what), out);
  }
  const Meeting& meeting = evidence.replayed.meetings[fatal.meeting];
  Root root{fatal.rank, fatal.meeting};
  if (meeting.last_arrival > fatal.time || meeting.arrived < meeting.expected) {
    root = root_of(evidence, meeting.last_arriver, fatal.time);
  }
  if (root.moving == UINT32_MAX) {
    return blame_rank(evidence, root.rank, fmt::format("had not come to {} in time", what), out);
  }
  const LinkId link = LinkTraffic(evidence).bottleneck(
      evidence.replayed.shape_of[root.moving], evidence.replayed.meetings[root.moving].last_arrival,
      fatal.time);
  if (link != platforms::kNoLink) {
    blame_link(evidence, link,
               fmt::format("bounds {}, which did not end in time",
                           describe_meeting(evidence, evidence.replayed.meetings[root.moving])),
               out);
  }
}

// Those who wait for a process that is gone over the network are told by their transport: the
// connection is closed. Over NVLink, PCIe and shared memory nothing tells them.
void add_peer_texts(const Evidence& evidence, const Expiry& fatal, pb::Outcome& out) {
  const Replayed& replayed = evidence.replayed;
  const uint32_t communicator = replayed.meetings[fatal.meeting].communicator;
  if (evidence.models[communicator].transport().find("NET/") == std::string::npos) return;
  for (uint32_t i = replayed.calls_begin[fatal.meeting];
       i < replayed.calls_begin[fatal.meeting + 1]; ++i) {
    const MeetingCall& who = replayed.calls_of[i];
    const Nanos arrival = replayed.arrival[who.rank][who.call];
    if (who.rank == fatal.rank || arrival < 0 || arrival > fatal.time) continue;
    pb::ErrorText& error = *out.add_error_text();
    error.set_rank(evidence.program.ranks[who.rank].rank);
    error.set_text(
        "NCCL error: ncclRemoteError: A call failed possibly due to a network error or a remote "
        "process exiting prematurely.");
  }
}

void crash(const Evidence& evidence, const std::vector<Expiry>& timers, const Expiry& fatal,
           pb::Outcome& out) {
  out.set_verdict(pb::CRASH);
  for (const Expiry& expiry : timers) {
    if (expiry.time > fatal.time + kTogether) break;
    if (expiry.timer != fatal.timer) continue;
    add_timer(evidence, expiry, out);
    add_text(evidence, expiry, out);
  }
  if (fatal.timer == "launcher" && fatal.meeting != UINT32_MAX) {
    add_peer_texts(evidence, fatal, out);
  }
  if (fatal.meeting != UINT32_MAX) fill_failure(evidence, fatal.meeting, out);
  pb::Failure& failure = *out.mutable_first_failure();
  failure.set_rank(evidence.program.ranks[fatal.rank].rank);
  failure.set_time_ns(fatal.time);
  const std::vector<Nanos> ends = step_ends(evidence);
  // Who gives up the very first collective of a group has not begun to train together.
  const bool first_call = fatal.timer == "watchdog" && fatal.meeting != UINT32_MAX &&
                          evidence.replayed.meetings[fatal.meeting].sequence == 0;
  const bool before = !ends.empty() && fatal.time < ends.front();
  failure.set_phase(before || first_call ? pb::PREPARATION : pb::TRAINING);
  blame(evidence, timers, fatal, out);
}

void fill_memory(const Evidence& evidence, const std::vector<MemoryAccount>& memory,
                 pb::Outcome& out) {
  const std::vector<Nanos> ends = step_ends(evidence);
  for (const MemoryAccount& account : memory) {
    pb::RankMemory& row = *out.mutable_memory()->add_ranks();
    row.set_rank(evidence.program.ranks[account.rank].rank);
    row.set_peak(account.peak);
    row.set_capacity(account.capacity);
    row.set_peak_ns(std::max<Nanos>(0, time_of(ends, account.peak_step, account.peak_part)));
    for (const auto& [name, bytes] : account.parts) {
      pb::MemoryPart& part = *row.add_parts();
      part.set_name(name);
      part.set_bytes(bytes);
    }
  }
}

}  // namespace

Ending fill_ending(const Scenario& scenario, const Evidence& evidence, pb::Outcome& out) {
  Findings findings;
  const std::vector<MemoryAccount> memory = memory_accounts(scenario, evidence, findings);
  const std::vector<Expiry> timers = expiries(scenario, evidence, memory, findings);
  fill_memory(evidence, memory, out);
  for (const Finding& row : findings.rows()) {
    pb::OutcomeFinding& shown = *out.add_findings();
    shown.set_id(row.id);
    shown.set_severity(name_of(row.severity));
    shown.set_count(row.count);
    shown.set_first(row.first);
    shown.set_advice(row.advice);
  }
  const Nanos progress = last_progress(evidence);
  const auto fatal = std::find_if(timers.begin(), timers.end(),
                                  [](const Expiry& expiry) { return expiry.ends_job; });
  const bool stands_still =
      fatal != timers.end() && !evidence.replayed.completed && fatal->time > progress;
  if (fatal != timers.end() && !(stands_still && only_watches(*fatal))) {
    Ending ending{true, fatal->time, cut(evidence, fatal->time)};
    const Evidence until{evidence.program, evidence.names,   ending.replayed,  evidence.models,
                         evidence.links,   evidence.options, evidence.schedule};
    out.set_last_progress_ns(last_progress(until));
    crash(evidence, timers, *fatal, out);
    return ending;
  }
  if (evidence.replayed.completed) {
    out.set_verdict(pb::COMPLETED);
    // Timers that only warn.
    for (const Expiry& expiry : timers) add_timer(evidence, expiry, out);
    return {};
  }
  out.set_verdict(pb::HANG);
  out.set_last_progress_ns(progress);
  fill_hang(evidence, out);
  // What is on the screen of a rank that ended, where no launcher ends the others for it.
  for (const StoppedRank& rank : evidence.schedule.stopped) {
    if (rank.silent || rank.text.empty() || evidence.program.find(rank.rank) < 0) continue;
    pb::ErrorText& error = *out.add_error_text();
    error.set_rank(rank.rank);
    error.set_text(rank.text);
  }
  for (const Expiry& expiry : timers) {
    add_timer(evidence, expiry, out);
    if (expiry.timer != "heartbeat") add_text(evidence, expiry, out);
  }
  // What stalled and went on did not fail.
  const auto failed = std::find_if(timers.begin(), timers.end(), [&](const Expiry& expiry) {
    return expiry.meeting == UINT32_MAX || evidence.replayed.meetings[expiry.meeting].end < 0;
  });
  if (failed != timers.end() && out.has_first_failure()) {
    const Expiry& first = *failed;
    if (first.meeting != UINT32_MAX) fill_failure(evidence, first.meeting, out);
    out.mutable_first_failure()->set_time_ns(first.time);
    out.mutable_first_failure()->set_rank(evidence.program.ranks[first.rank].rank);
  }
  return {};
}

}  // namespace rehearse::sim
