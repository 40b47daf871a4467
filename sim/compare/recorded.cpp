// SPDX-License-Identifier: Apache-2.0
// The recording as a run: the ends of the program's operations are those that were recorded.
#include <algorithm>

#include "sim/compare/compare.hpp"
#include "sim/replay/meetings.hpp"
#include "sim/simulate.hpp"
#include "sim/worker.hpp"

namespace rehearse::sim {
namespace {

using traces::OpId;
using traces::OpKind;

// Recorded start and end of each operation of a rank's program, which has those of the trace lane by lane in order.
std::vector<std::pair<Nanos, Nanos>> recorded_spans(const traces::RankTrace& trace,
                                                    const traces::RankProgram& rank) {
  std::vector<bool> named(trace.ops.size(), false);
  for (const traces::Dependency& told : trace.ops.dependencies) {
    named[told.op] = named[told.on] = true;
  }
  std::vector<std::pair<Nanos, Nanos>> out(rank.size());
  std::vector<OpId> next(rank.lane_begin.begin(), rank.lane_begin.end() - 1);
  for (size_t i = 0; i < trace.ops.size(); ++i) {
    const OpKind kind = trace.ops.kind[i];
    const bool work =
        kind != OpKind::kHost && kind != OpKind::kAnnotation && kind != OpKind::kMemory;
    if (!work && !named[i]) continue;
    const traces::LaneId lane = trace.ops.lane[i];
    if (next[lane] == rank.lane_begin[lane + 1]) continue;
    out[next[lane]++] = {trace.ops.start[i], trace.ops.start[i] + trace.ops.duration[i]};
  }
  return out;
}

// The run as recorded; calls meet as in a replay.
void set_recorded(const traces::Trace& trace, const traces::Program& program, Replayed& out) {
  Nanos origin = INT64_MAX;
  for (const traces::RankTrace& rank : trace.ranks) {
    if (rank.ops.size() > 0) origin = std::min(origin, rank.ops.start.front());
  }
  for (Meeting& meeting : out.meetings) {
    meeting.arrived = 0;
    meeting.end = meeting.last_arrival = -1;
  }
  for (uint32_t r = 0; r < program.ranks.size(); ++r) {
    const traces::RankProgram& rank = program.ranks[r];
    const auto spans = recorded_spans(trace.ranks[r], rank);
    for (OpId op = 0; op < rank.size(); ++op) out.end[r].set(op, spans[op].second - origin);
    for (size_t c = 0; c < rank.calls.size(); ++c) {
      const OpId op = rank.call_op[c];
      const Nanos arrival = spans[op].first - origin;
      out.arrival[r][c] = arrival;
      Meeting& meeting = out.meetings[out.meeting_of[r][c]];
      ++meeting.arrived;
      meeting.end = std::max(meeting.end, out.end[r][op]);
      if (arrival <= meeting.last_arrival) continue;
      meeting.last_arrival = arrival;
      meeting.last_arriver = r;
      meeting.last_op = op;
    }
  }
  out.completed = true;
}

}  // namespace

Result<pb::Outcome> recorded_run(const Scenario& scenario, Reporter& reporter) {
  if (!scenario.transforms.empty() || !scenario.timed.empty() || scenario.replicas > 1) {
    return fail(Code::kBadInput, "patches changed what is replayed", scenario.document.name(),
                "compare a trace as it was recorded");
  }
  RH_TRY(const std::string bytes,
         in_child(
             [&](Reporter& inner) -> Result<std::string> {
               pb::Outcome outcome;
               auto done = replay_here(scenario, inner, [&](const Evidence& evidence) {
                 Replayed recorded = evidence.replayed;
                 set_recorded(*scenario.trace, evidence.program, recorded);
                 const Evidence run{evidence.program, evidence.names, recorded,
                                    evidence.models,  evidence.links, evidence.options,
                                    evidence.schedule};
                 outcome.set_scenario(scenario.document.name() + " (recorded)");
                 outcome.set_verdict(pb::COMPLETED);
                 fill_step_times(step_ends(run), *outcome.mutable_step_time_ns());
                 fill_critical_path(run, SIZE_MAX, *outcome.mutable_critical_path());
                 add_findings(evidence.program.findings, *outcome.mutable_findings());
               });
               if (!done) return tl::unexpected(done.error());
               return encoded(outcome);
             },
             reporter));
  pb::Outcome outcome;
  if (!outcome.ParseFromString(bytes)) {
    return fail(Code::kInternal, "the simulation's answer could not be read");
  }
  return outcome;
}

}  // namespace rehearse::sim
