// SPDX-License-Identifier: Apache-2.0
// The part of an outcome that logs and dumps tell.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <climits>
#include <set>

#include "base/text.hpp"
#include "faults/diagnose/error_texts.hpp"
#include "faults/diagnose/job_logs.hpp"
#include "faults/diagnose/observable.hpp"
#include "faults/diagnose/recorded_waits.hpp"
#include "faults/diagnose/suspects.hpp"

namespace rehearse::faults {
namespace {

constexpr const char* kFact = "in-logs";
constexpr const char* kNoLonger = "no longer: ";
constexpr std::string_view kPrintsNothing = " prints nothing";
// Signs that somebody gave up waiting.
constexpr std::array<std::string_view, 6> kGaveUp = {"imeout",  "imed out", "Watchdog",
                                                     "Stalled", "stall",    "remainder of ranks"};

constexpr std::string_view kWatchdog = "Watchdog caught collective operation timeout";
// Steps this much longer at the end than at the beginning are more than the usual ups and downs.
constexpr double kSlowingDown = 1.2;

bool gave_up(std::string_view text) {
  return std::any_of(kGaveUp.begin(), kGaveUp.end(),
                     [&](std::string_view sign) { return text.find(sign) != text.npos; });
}

// What all logs say of communicators of one size.
struct Wiring {
  std::set<std::string> net, inside;
  bool direct = true;  // every connection over the network goes from GPU to adapter
  std::set<uint32_t> channels;
  std::set<uint32_t> over_network;  // ranks at which it leaves their nodes
};

std::string transport_of(const Wiring& wiring) {
  if (wiring.net.count("Socket")) return "NET/Socket";
  if (!wiring.net.empty()) {
    return "NET/" + *wiring.net.begin() + (wiring.direct ? "/GDRDMA" : "");
  }
  if (wiring.inside.count("SHM")) return "SHM";
  return wiring.inside.empty() ? "" : *wiring.inside.begin();
}

void add_fact(const std::string& what, pb::Outcome& out) {
  pb::OutcomeFinding& finding = *out.add_findings();
  finding.set_id(kFact);
  finding.set_first(what);
}

void add_wiring(const JobLogs& logs, pb::Outcome& out) {
  std::map<std::pair<uint32_t, uint32_t>, Wiring> by_size;
  for (const JobLogs::OfRank& one : logs.nccl) {
    for (const pb::NcclCommunicator& communicator : one.log.communicators()) {
      Wiring& wiring = by_size[{communicator.ranks_total(), communicator.nodes()}];
      if (communicator.coll_channels() > 0) wiring.channels.insert(communicator.coll_channels());
      for (const pb::NcclConnection& way : communicator.connections()) {
        if (way.transport() == "NET") {
          if (one.rank) wiring.over_network.insert(*one.rank);
          wiring.net.insert(way.network());
          wiring.direct = wiring.direct && way.gpu_direct();
        } else {
          wiring.inside.insert(way.transport());
        }
      }
    }
  }
  for (const auto& [size, wiring] : by_size) {
    pb::CommunicatorUse& use = *out.add_communicators();
    use.set_id(fmt::format("{} ranks on {} nodes", size.first, size.second));
    use.set_ranks(size.first);
    use.set_nodes(size.second);
    use.set_transport(transport_of(wiring));
    for (const uint32_t rank : wiring.over_network) {
      add_fact(fmt::format("{}: rank {} goes over the network", use.id(), rank), out);
    }
    for (const uint32_t channels : wiring.channels) {
      add_fact(fmt::format("{}: {} channels", use.id(), channels), out);
    }
    // Which way the ranks of a node take to each other.
    for (const std::string& way : wiring.inside) {
      add_fact(fmt::format("{}: {} inside nodes", use.id(), way), out);
    }
  }
}

// Adapters and GPUDirect of each node, as its ranks announce them.
void add_nodes(const JobLogs& logs, const pb::Scenario& job, pb::Outcome& out) {
  std::map<uint32_t, uint32_t> node_of;
  for (const pb::RankLaunch& rank : job.launch().ranks()) node_of[rank.rank()] = rank.node();
  std::map<uint32_t, std::set<std::string>> adapters;
  std::map<uint32_t, std::set<int32_t>> in_use;  // adapters that connections go over
  std::set<uint32_t> not_direct;
  for (const JobLogs::OfRank& one : logs.nccl) {
    if (!one.rank || !node_of.count(*one.rank)) continue;
    const uint32_t node = node_of.at(*one.rank);
    for (const pb::NcclCommunicator& communicator : one.log.communicators()) {
      for (const pb::NcclConnection& way : communicator.connections()) {
        if (way.transport() == "NET" && way.nic() >= 0) in_use[node].insert(way.nic());
      }
    }
    for (const pb::NcclProcess& process : one.log.processes()) {
      for (const pb::NcclNic& nic : process.nics()) adapters[node].insert(nic.name());
      for (const auto& [name, direct] : process.gpu_direct()) {
        if (!direct) not_direct.insert(node);
      }
    }
  }
  for (const auto& [node, names] : adapters) {
    const std::vector<std::string> list(names.begin(), names.end());
    add_fact(fmt::format("node {} uses {}", node, fmt::join(list, " ")), out);
  }
  for (const auto& [node, nics] : in_use) {
    for (const int32_t nic : nics) {
      add_fact(fmt::format("{}{} adapter {} is in use", kOfNode, node, nic), out);
    }
  }
  for (const uint32_t node : not_direct) {
    pb::Culprit& culprit = *out.add_culprits();
    culprit.set_kind("node");
    culprit.set_node(node);
  }
}

void add_errors(const JobLogs& logs, const pb::Scenario& job, pb::Outcome& out) {
  const auto nobody = static_cast<uint32_t>(job.launch().ranks_size());
  const auto add = [&](std::optional<uint32_t> rank, const std::string& text) {
    pb::ErrorText& error = *out.add_error_text();
    error.set_rank(rank.value_or(nobody));
    error.set_text(text);
  };
  for (const JobLogs::OfRank& one : logs.nccl) {
    for (const pb::NcclWarning& warning : one.log.warnings()) {
      add(one.rank, "NCCL WARN " + warning.text());
    }
  }
  for (const PrintedError& error : logs.printed) add(error.rank, error.text);
}

// How long calls were put into queues, and something came of them.
void add_progress(const JobLogs& logs, pb::Outcome& out) {
  int64_t first = INT64_MAX, last = INT64_MIN;
  for (const pb::FlightRecorder& recorder : logs.recorders) {
    if (!recorder.has_rank()) continue;
    for (const pb::FlightEntry& entry : recorder.entries()) {
      if (entry.created_ns() > 0) first = std::min(first, entry.created_ns());
      last = std::max({last, entry.created_ns(), entry.started_ns(), entry.completed_ns()});
    }
  }
  if (first < last) out.set_last_progress_ns(last - first);
}

// Steps that the script told of. Nobody knows them where no word of the program is there, as in files of NCCL alone, or where
// none of its words is known.
void add_steps_told(const JobLogs& logs, pb::Outcome& out) {
  std::set<uint32_t> tell;
  std::optional<uint32_t> most;
  for (const JobLogs::StepsOfRank& one : logs.steps) {
    if (one.told.steps) most = std::max(most.value_or(0), *one.told.steps);
    if (one.rank && one.told.lines > 0) tell.insert(*one.rank);
    if (const auto longer = growth(one.told); longer && *longer > kSlowingDown) {
      add_fact("steps take longer towards the end", out);
    }
  }
  if (!most) return;
  pb::OutcomeFinding& finding = *out.add_findings();
  finding.set_id(std::string(kStepsTold));
  finding.set_count(*most);
  // Where NCCL says nothing at all it may not have been asked to, and scripts that print on every rank are many.
  if (tell.size() > 1 && !logs.nccl.empty() && out.communicators().empty()) {
    add_fact("several processes train, without a communicator", out);
  }
}

// Processes in whose output there is not even a greeting, where others have words. A dump alone says nothing of it.
void add_speechless(const JobLogs& logs, pb::Outcome& out) {
  if (logs.spoke.empty()) return;
  for (const uint32_t rank : logs.output) {
    if (!logs.spoke.contains(rank)) add_fact(fmt::format("rank {}{}", rank, kPrintsNothing), out);
  }
}

// Who prints that its watchdog gave up a call was in it; where its peers left dumps and it did not, its own got lost.
void add_watchdogs(pb::Outcome& out) {
  std::set<uint32_t> dumped;
  for (const pb::FlightRecorder& recorder : out.flight_records()) dumped.insert(recorder.rank());
  for (const pb::ErrorText& error : out.error_text()) {
    if (error.text().find(kWatchdog) == std::string::npos || error.rank() >= out.ranks()) continue;
    pb::TimerEvent& timer = *out.add_timers();
    timer.set_rank(error.rank());
    timer.set_timer("watchdog");
    timer.set_text(error.text());
    if (!dumped.empty() && dumped.insert(error.rank()).second) out.add_not_recorded(error.rank());
  }
}

// The rank with an error that nobody else has.
std::optional<uint32_t> alone_in_trouble(const pb::Outcome& out) {
  std::map<std::string, std::set<uint32_t>> who;
  for (const pb::ErrorText& error : out.error_text()) {
    if (!gave_up(error.text())) who[text_kind(error.text())].insert(error.rank());
  }
  for (const pb::ErrorText& error : out.error_text()) {
    const auto found = who.find(text_kind(error.text()));
    if (found != who.end() && found->second.size() == 1) return error.rank();
  }
  return std::nullopt;
}

void add_ending(const JobLogs& logs, pb::Outcome& out) {
  const bool dumped = !logs.recorders.empty();
  const bool came_up = dumped || !out.communicators().empty();
  out.set_verdict(pb::COMPLETED);
  const bool broken = std::any_of(out.error_text().begin(), out.error_text().end(),
                                  [](const auto& error) { return !gave_up(error.text()); });
  // Processes that said hello, and nothing more.
  const bool stuck = !came_up && !logs.nccl.empty();
  if (out.error_text().empty() && out.waits().empty() && !stuck) return;
  out.set_verdict(broken ? pb::CRASH : pb::HANG);
  pb::Failure& failure = *out.mutable_first_failure();
  failure.set_phase(came_up ? pb::TRAINING : logs.nccl.empty() ? pb::RENDEZVOUS : pb::BOOTSTRAP);
  const auto alone = broken ? alone_in_trouble(out) : std::nullopt;
  failure.set_rank(alone.value_or(out.ranks()));
}

}  // namespace

pb::Outcome outcome_in(const JobLogs& logs, const pb::Scenario& job) {
  pb::Outcome out;
  out.set_schema("rehearse.outcome/1");
  out.set_scenario(job.name());
  out.set_ranks(static_cast<uint32_t>(job.launch().ranks_size()));
  for (uint32_t rank = 0; !logs.ranks.empty() && rank < out.ranks(); ++rank) {
    if (logs.ranks.contains(rank)) continue;
    out.add_not_recorded(rank);
    out.add_not_heard(rank);
  }
  add_wiring(logs, out);
  add_nodes(logs, job, out);
  add_errors(logs, job, out);
  add_progress(logs, out);
  add_steps_told(logs, out);
  add_speechless(logs, out);
  for (const pb::FlightRecorder& recorder : logs.recorders) *out.add_flight_records() = recorder;
  add_watchdogs(out);
  *out.mutable_waits() = recorded_waits(out);
  add_ending(logs, out);
  return out;
}

void keep_what_differs(const pb::Outcome& healthy, pb::Outcome& run) {
  for (pb::CommunicatorUse& use : *run.mutable_communicators()) {
    for (const pb::CommunicatorUse& usual : healthy.communicators()) {
      if (usual.id() == use.id()) use.set_offered(usual.transport());
    }
  }
  google::protobuf::RepeatedPtrField<pb::OutcomeFinding> other;
  for (const pb::OutcomeFinding& finding : run.findings()) {
    const bool usual =
        finding.id() != kStepsTold &&
        std::any_of(healthy.findings().begin(), healthy.findings().end(),
                    [&](const auto& known) { return known.first() == finding.first(); });
    if (!usual) *other.Add() = finding;
  }
  // Of communicators that came up again, with all logs there, what is not so any more. That a process is silent is no more than
  // that nothing is known of it.
  for (const pb::OutcomeFinding& known : healthy.findings()) {
    const bool still = known.id() != kFact || known.first().ends_with(kPrintsNothing) ||
                       run.communicators_size() < healthy.communicators_size() ||
                       !run.not_heard().empty() ||
                       std::any_of(run.findings().begin(), run.findings().end(),
                                   [&](const auto& row) { return row.first() == known.first(); });
    if (still) continue;
    pb::OutcomeFinding& gone = *other.Add();
    gone.set_id(kFact);
    gone.set_first(kNoLonger + known.first());
  }
  *run.mutable_findings() = std::move(other);
  google::protobuf::RepeatedPtrField<pb::Culprit> nodes;
  for (pb::Culprit& culprit : *run.mutable_culprits()) {
    const bool usual =
        std::any_of(healthy.culprits().begin(), healthy.culprits().end(),
                    [&](const auto& known) { return known.node() == culprit.node(); });
    if (!usual) *nodes.Add() = std::move(culprit);
  }
  *run.mutable_culprits() = std::move(nodes);
  const bool started = !run.communicators().empty();
  const auto told = steps_told(run);
  const uint32_t usual_steps = steps_told(healthy).value_or(0);
  // A job that logs its start and does not this time, or that told of more steps.
  const bool no_start = !started && !healthy.communicators().empty() && told.value_or(0) == 0;
  if (run.verdict() == pb::COMPLETED && (no_start || (told && *told < usual_steps))) {
    run.set_verdict(pb::HANG);
    run.mutable_first_failure()->set_phase(started || !no_start ? pb::TRAINING : pb::RENDEZVOUS);
    run.mutable_first_failure()->set_rank(run.ranks());
  }
  if (!told) return;
  // A real job has more steps than a simulated one.
  const uint32_t steps = std::min(*told, usual_steps);
  for (pb::OutcomeFinding& finding : *run.mutable_findings()) {
    if (finding.id() == kStepsTold) finding.set_count(steps);
  }
  if (run.verdict() != pb::COMPLETED && run.last_progress_ns() == 0) {
    run.set_last_progress_ns((2 * steps + 1) * healthy.step_time_ns().mean() / 2);
  }
}

}  // namespace rehearse::faults
