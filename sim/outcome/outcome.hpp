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
#include "traces/program/program.hpp"

namespace rehearse::sim {

// All that the questions below are asked of.
struct Evidence {
  const traces::Program& program;
  const traces::Strings& names;
  const Replayed& replayed;
  const std::vector<CommunicatorModel>& models;  // by communicator
  const platforms::Links& links;
};

// When each step had ended on all ranks; the first entry is when the work before the first step
// had. Steps that never ended are left out.
[[nodiscard]] std::vector<Nanos> step_ends(const Evidence& evidence);
void fill_step_times(const std::vector<Nanos>& ends, pb::StepTimes& out);

// compute, communication, wait, host and idle of every rank, mean per step. Nothing when no step
// ended.
void fill_breakdown(const Evidence& evidence, const std::vector<Nanos>& ends, pb::Outcome& out);

// The chain of operations that decided when the run ended, and how much of it each name, rank and
// link is.
void fill_critical_path(const Evidence& evidence, pb::Outcome& out);

// A run that stopped: the waits-for graph and the culprits (ranks that would never have come,
// members that disagree, or the cycle), and what the framework's watchdog prints.
void fill_hang(const Evidence& evidence, const pb::Launch& launch, pb::Outcome& out);

// Members that came to one call with different types, reductions, sizes or roots: wrong numbers
// where it ended all the same (wrong-semantics), an error where the framework compares what NCCL
// does not (Horovod; TORCH_DISTRIBUTED_DEBUG=DETAIL). After verdict and hang.
void fill_disagreement(const Evidence& evidence, const pb::Launch& launch, pb::Outcome& out);

// A run that ended but waited a lot for always the same ranks.
void fill_stragglers(const Evidence& evidence, const std::vector<Nanos>& ends, pb::Outcome& out);

// Links by use and communicators by what they did.
void fill_usage(const Evidence& evidence, pb::Outcome& out);

// Everything above.
[[nodiscard]] pb::Outcome make_outcome(const Scenario& scenario, const Evidence& evidence);

}  // namespace rehearse::sim
