// SPDX-License-Identifier: Apache-2.0
#include "sim/snapshot/snapshot.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/version.hpp"
#include "sim/outcome/expiry.hpp"

namespace rehearse::sim {

std::string describe_call(const Evidence& evidence, const traces::Call& call) {
  return fmt::format("{} {} on {}", name_of(call.collective), call.sequence,
                     evidence.program.communicators[call.communicator].id);
}

void fill_timers(const Instant& instant, pb::Snapshot& out) {
  Findings findings;
  const Nanos now = instant.standing.now;
  Schedule schedule = instant.past.schedule;
  std::erase_if(schedule.stopped, [now](const StoppedRank& rank) { return rank.at > now; });
  const Evidence past{instant.past.program,
                      instant.past.names,
                      instant.past.replayed,
                      instant.past.models,
                      instant.past.links,
                      instant.past.options,
                      schedule};
  for (const Expiry& expiry : expiries(instant.scenario, past, {}, findings)) {
    pb::TimerState& row = *out.add_timers();
    row.set_rank(past.program.ranks[expiry.rank].rank);
    row.set_timer(expiry.timer);
    row.set_runs_out_ns(expiry.time);
    row.set_ran_out(expiry.time <= now);
    row.set_action(expiry.action);
    if (expiry.meeting != UINT32_MAX) {
      row.set_call(describe_call(past, past.replayed.meetings[expiry.meeting].call));
    }
  }
}

pb::Snapshot take_snapshot(const Scenario& scenario, const Evidence& evidence,
                           const Standing& standing) {
  const Replayed until = cut(evidence, standing.now);
  const Evidence past{evidence.program, evidence.names,   until, evidence.models, evidence.links,
                      evidence.options, evidence.schedule};
  const Instant instant{scenario, evidence, past, standing};
  pb::Snapshot out;
  out.set_schema("rehearse.at/1");
  out.set_scenario(scenario.document.name());
  out.set_time_ns(standing.now);
  out.set_version(version());
  for (const std::string& patch : scenario.applied) out.add_patches(patch);
  fill_ranks(instant, out);
  fill_calls(instant, out);
  fill_flows(instant, out);
  fill_timers(instant, out);
  add_findings(evidence.program.findings, *out.mutable_findings());
  return out;
}

}  // namespace rehearse::sim
