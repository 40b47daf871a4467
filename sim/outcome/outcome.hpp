// SPDX-License-Identifier: Apache-2.0
// From what the replay left behind to an Outcome: verdict, step times, where each rank's time went,
// the critical path, who waits for whom and who is to blame. One file per question; all are pure
// functions of their inputs.
#pragma once

#include "platforms/model/links.hpp"
#include "sim/nccl/traffic.hpp"
#include "sim/proto/outcome.pb.h"
#include "sim/replay/replay.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/schedule.hpp"
#include "traces/program/program.hpp"

namespace rehearse::sim {

// All that the questions below are asked of.
struct Evidence {
  const traces::Program& program;
  const traces::Strings& names;
  const Replayed& replayed;
  const std::vector<CommunicatorModel>& models;  // by communicator
  const platforms::Links& links;
  const ReplayOptions& options;  // as the replay had them
  const Schedule& schedule;      // what changed on the way
};

// Appends what the importers and models say of the run.
void add_findings(const Findings& findings,
                  google::protobuf::RepeatedPtrField<pb::OutcomeFinding>& out);

// When each step had ended on all ranks; the first entry is when the work before the first step
// had. Steps that never ended are left out.
[[nodiscard]] std::vector<Nanos> step_ends(const Evidence& evidence);
// Simulated time of a place in the run: step 0 is what comes before the first one, `part` how far
// into it. -1: the run did not come there.
[[nodiscard]] Nanos time_of(const std::vector<Nanos>& ends, uint32_t step, double part);
void fill_step_times(const std::vector<Nanos>& ends, pb::StepTimes& out);

// compute, communication, wait, host and idle of every rank, mean per step. Nothing when no step
// ended.
void fill_breakdown(const Evidence& evidence, const std::vector<Nanos>& ends, pb::Outcome& out);

// The chain of operations that decided when the run ended, and how much of it each name, rank and
// link is.
void fill_critical_path(const Evidence& evidence, pb::Outcome& out);
// The same with at most so many rows per table. False: nothing ended.
bool fill_critical_path(const Evidence& evidence, size_t rows, pb::CriticalPath& path);
// By how much a step would be shorter, on average, without each row of the path: the run is timed
// again for each, so only where somebody reads it.
void fill_savings(const Evidence& evidence, pb::CriticalPath& path);

// When a lane or a flow last went on.
[[nodiscard]] Nanos last_progress(const Evidence& evidence);

// A run that stopped: the waits-for graph and the culprits (ranks that would never have come,
// members that disagree, or the cycle), and the first call that waits. `last_progress_ns` is filled.
void fill_hang(const Evidence& evidence, pb::Outcome& out);
// first_failure of a call that did not end.
void fill_failure(const Evidence& evidence, uint32_t meeting, pb::Outcome& out);

// Did a timer end the run, and what do timers print? Fills verdict, timers, error_text,
// first_failure, culprits and waits of a run that did not complete, or that a timer ended. The
// second is the run as it was until then.
struct Ending {
  bool ended = false;  // by a timer, at `when`
  Nanos when = 0;
  Replayed replayed;  // only when ended
};
[[nodiscard]] Ending fill_ending(const Scenario& scenario, const Evidence& evidence,
                                 pb::Outcome& out);

// Members that came to one call with different types, reductions, sizes or roots: wrong numbers
// where it ended all the same (wrong-semantics), an error where the framework compares what NCCL
// does not (Horovod; TORCH_DISTRIBUTED_DEBUG=DETAIL). After verdict and hang.
void fill_disagreement(const Evidence& evidence, const pb::Launch& launch, pb::Outcome& out);

// A run that ended but waited a lot for ranks whose own work takes longer than that of their likes. After the breakdown.
void fill_stragglers(const Evidence& evidence, pb::Outcome& out);

// Expected time per useful step on nodes that fail now and then; nothing where the scenario does not
// say how often, or no checkpoint was written.
void fill_goodput(const pb::Scenario& document, const Evidence& evidence,
                  const std::vector<Nanos>& ends, pb::Outcome& out);
// The same as a formula: all times in one unit, `every` in steps.
[[nodiscard]] double expected_step(double step, double stall, double every, double between,
                                   double restart);

// Links by use, and communicators by what they did.
void fill_links(const Evidence& evidence, pb::Outcome& out);
void fill_communicators(const Evidence& evidence, pb::Outcome& out);

// "stream 20 nccl".
[[nodiscard]] std::string lane_name(const Evidence& evidence, const traces::Lane& lane);

// Every operation of every rank that ended, with its simulated times. Operations of a lane that together take no longer
// than the resolution are one entry (overview.hpp); 0: each is.
void fill_timeline(const Evidence& evidence, Nanos resolution, pb::Timeline& out);
// At which about `most` entries are left at most; 0: there are no more operations.
[[nodiscard]] Nanos resolution_of(const Evidence& evidence, size_t most);

// "dgx-a100: 2 nodes".
[[nodiscard]] std::string platform_line(const pb::Platform& platform);

// Everything above but the timeline.
[[nodiscard]] pb::Outcome make_outcome(const Scenario& scenario, const Evidence& evidence);
// The same without the critical path and stragglers: what somebody could have recorded, and no reasons.
[[nodiscard]] pb::Outcome make_observed(const Scenario& scenario, const Evidence& evidence);
// The same without what only tells why a completed run takes as long as it does: links, the critical path, stragglers.
// Verdict, times, memory and all that a symptom is told from are the same.
[[nodiscard]] pb::Outcome make_figures(const Scenario& scenario, const Evidence& evidence);

}  // namespace rehearse::sim
