// SPDX-License-Identifier: Apache-2.0
#include "sim/bringup/bringup.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/version.hpp"
#include "sim/bringup/states.hpp"
#include "sim/bringup/texts.hpp"
#include "sim/outcome/outcome.hpp"

namespace rehearse::sim::bringup {
namespace {

pb::Phase phase_of(const std::string& state) {
  if (state == "launch" || state == "device") return pb::STARTING;
  if (state == "lookup" || state == "bind" || state == "connect" || state == "join") {
    return pb::RENDEZVOUS;
  }
  return state == "first-collective" ? pb::TRAINING : pb::BOOTSTRAP;
}

// Who reaches whom may rest on a router that nobody wrote down.
void tell_assumed_routers(Job& job) {
  const std::vector<size_t> started = job.started();
  if (started.empty() || !job.network.described()) return;
  const uint32_t first = job.processes[started.front()].node;
  std::set<uint32_t> others;
  for (const size_t p : started) others.insert(job.processes[p].node);
  others.erase(first);
  for (const uint32_t other : others) {
    if (job.network.way_between(first, other) != WayKind::kAssumed) continue;
    job.findings.add("router-assumed", Severity::kWarning,
                     fmt::format("{} and {} have no network in common", job.node(first).name(),
                                 job.node(other).name()),
                     "a router between them is taken to exist; write it down (networks of the "
                     "platform, routes of nodes)");
  }
}

// The states in the order in which the job walks through them.
void walk_states(Job& job) {
  using State = void (*)(Job&);
  std::vector<State> states = {start_processes, select_devices};
  const pb::Backend backend = job.launch.backend();
  switch (job.launch.framework()) {
    case pb::HOROVOD:
      states.push_back(meet_in_horovod);
      break;
    case pb::TENSORFLOW:
    case pb::KERAS:
      states.push_back(meet_in_tensorflow);
      break;
    default:
      states.push_back(backend == pb::MPI ? join_mpi : meet_at_store);
      if (backend == pb::GLOO) states.push_back(join_full_mesh);
      states.push_back(divide_world);
      break;
  }
  const bool by_address =
      job.launch.framework() == pb::PYTORCH || job.launch.framework() == pb::FRAMEWORK_UNSPECIFIED;
  // The first node stands there where nobody wrote one.
  const bool by_default = job.document.platform().nodes_size() > 0 &&
                          job.launch.master_addr() == job.document.platform().nodes(0).name();
  if (!by_address && !by_default && !job.launch.master_addr().empty()) {
    job.findings.add(
        "master-address-unread", Severity::kInfo, job.launch.master_addr(),
        "Horovod's launcher and TF_CONFIG say where processes meet; it changes nothing");
  }
  const std::vector<size_t> started = job.started();
  job.alone = job.processes.size() > 1 && !started.empty() &&
              std::all_of(started.begin(), started.end(),
                          [&](size_t p) { return job.processes[p].world_size == 1; });
  if (!job.alone && backend == pb::NCCL) {
    states.insert(states.end(), {bootstrap_nccl, connect_transports, tune_nccl, move_first_data});
  }
  for (const State state : states) {
    state(job);
    if (!job.troubles.empty()) return;
  }
}

// By the time at which they show. Among equals the order in which they arose: causes before those who wait for them.
void sort_troubles(Job& job) {
  std::stable_sort(job.troubles.begin(), job.troubles.end(),
                   [](const Trouble& a, const Trouble& b) { return a.gives_up < b.gives_up; });
}

void add_culprits(const Job& job, pb::Outcome& out) {
  for (const Blamed& blamed : job.blamed) {
    pb::Culprit& culprit = *out.add_culprits();
    culprit.set_kind(blamed.kind);
    if (blamed.kind == "rank") culprit.set_rank(blamed.index);
    if (blamed.kind == "node") culprit.set_node(blamed.index);
    culprit.set_why(blamed.why);
  }
}

void add_rank(const Job& job, const Trouble& trouble, const std::string& text, pb::Outcome& out) {
  const uint32_t rank = job.processes[trouble.process].seat;
  pb::RankBringUp& row = *out.mutable_bring_up()->add_ranks();
  row.set_rank(rank);
  row.set_state(trouble.state);
  row.set_since_ns(trouble.since);
  if (trouble.gives_up != kNever) row.set_gives_up_ns(trouble.gives_up);
  row.set_text(text);
  if (trouble.waits) {
    pb::Wait& wait = *out.add_waits();
    wait.set_rank(rank);
    for (const uint32_t other : trouble.for_ranks) wait.add_for_ranks(other);
    wait.set_operation(trouble.state);
    wait.set_since_ns(trouble.since);
  }
  if (trouble.gives_up == kNever || text.empty()) return;
  pb::ErrorText& error = *out.add_error_text();
  error.set_rank(rank);
  error.set_text(text);
  if (!trouble.waits) return;
  pb::TimerEvent& timer = *out.add_timers();
  timer.set_time_ns(trouble.gives_up);
  timer.set_rank(rank);
  timer.set_timer(trouble.watched ? "watchdog" : "start");
  timer.set_text(text);
  timer.set_action("raise");
}

Result<pb::Outcome> failed_outcome(const Scenario& scenario, const Job& job) {
  RH_TRY(const pb::BringUpTexts texts, load_texts());
  pb::Outcome out;
  const Trouble& first = job.troubles.front();
  out.set_schema("rehearse.outcome/1");
  out.set_scenario(scenario.document.name());
  out.set_synthetic(scenario.trace->header.synthetic());
  out.set_platform(platform_line(scenario.document.platform()));
  out.set_seed(scenario.document.seed());
  out.set_ranks(static_cast<uint32_t>(job.processes.size() * scenario.replicas));
  out.set_version(version());
  for (const std::string& patch : scenario.applied) out.add_patches(patch);
  // Nothing moves and only timers are pending: a hang that they end. An error that is raised at once: a crash.
  out.set_verdict(first.waits ? pb::HANG : pb::CRASH);
  out.mutable_bring_up()->set_failed_in(first.state);
  Nanos last = 0;
  for (const Trouble& trouble : job.troubles) {
    add_rank(job, trouble, text_of(texts, job.launch, trouble), out);
    last = std::max(last, trouble.since);
  }
  pb::Failure& failure = *out.mutable_first_failure();
  failure.set_rank(job.processes[first.process].seat);
  failure.set_time_ns(first.gives_up == kNever ? first.since : first.gives_up);
  failure.set_operation(first.state);
  failure.set_phase(phase_of(first.state));
  out.set_last_progress_ns(last);
  out.set_end_ns(failure.time_ns());
  add_culprits(job, out);
  return out;
}

void add_findings(const Findings& findings, pb::Outcome& out) {
  for (const Finding& row : findings.rows()) {
    pb::OutcomeFinding& shown = *out.add_findings();
    shown.set_id(row.id);
    shown.set_severity(name_of(row.severity));
    shown.set_count(row.count);
    shown.set_first(row.first);
    shown.set_advice(row.advice);
  }
}

}  // namespace

Result<CameUp> bring_up(const Scenario& scenario) {
  const uint32_t recorded =
      scenario.trace->ranks.empty() ? 0 : scenario.trace->ranks.back().rank + 1;
  const uint32_t whole =
      std::max(scenario.trace->header.world_size(), recorded) * scenario.replicas;
  const auto launched = static_cast<uint32_t>(scenario.document.launch().ranks_size());
  Job job(scenario.document, whole - std::min(whole, launched));
  job.trace = scenario.trace.get();
  tell_assumed_routers(job);
  walk_states(job);
  CameUp out;
  if (!job.troubles.empty()) {
    sort_troubles(job);
    out.failed = true;
    RH_TRY(out.outcome, failed_outcome(scenario, job));
    add_findings(scenario.findings, out.outcome);
    add_findings(job.findings, out.outcome);
    return out;
  }
  Nanos ready = 0;
  for (size_t p = 0; p < job.processes.size(); ++p) {
    const Process& process = job.processes[p];
    ready = std::max(ready, process.clock);
    const auto entry = static_cast<int>(p);
    if (process.gpu && *process.gpu != job.launch.ranks(entry).gpu()) {
      out.moved.emplace_back(entry, *process.gpu);
    }
  }
  out.outcome.mutable_bring_up()->set_ready_ns(ready);
  out.alone = job.alone;
  add_findings(job.findings, out.outcome);
  return out;
}

}  // namespace rehearse::sim::bringup
