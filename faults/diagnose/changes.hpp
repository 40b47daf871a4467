// SPDX-License-Identifier: Apache-2.0
// How a run differs from the healthy run of the same job, aspect by aspect. Evidence is compared with the
// healthy run of the real machine, a simulated fault with the simulated healthy run: what the model
// gets wrong about the machine is in both of its runs and cancels. Pure functions.
//
//   measured   one figure per rank (or for the job); a rank that was not recorded is not there
//   counted    whatever is there, by name; what is not there is 0: links, calls, texts, who waits
#pragma once

#include <map>
#include <string>

#include "sim/proto/outcome.pb.h"

namespace rehearse::faults {

enum class Aspect {
  // Runs that complete. Times are shares of the healthy step.
  kStep,       // ln(step / healthy step)
  kPattern,    // of single steps around their mean
  kCompute,    // per rank
  kTransfer,   // per rank: communication
  kWait,       // per rank
  kHost,       // per rank: GPU without work because the host is late
  kIdle,       // per rank: the rest of its time
  kOverlap,    // per rank: communication behind compute
  kCalls,      // calls and bytes of each communicator, ln
  kBandwidth,  // bus bandwidth of each communicator, ln
  kAlgorithm,  // that NCCL used
  kLinks,      // busy share of each link
  // All runs.
  kTransport,  // of each communicator, and the nodes whose log tells of a fall-back
  kMemory,     // peaks and what they are made of, shares of the capacity
  kFindings,   // what people see: steps, devices, results
  // Runs that do not complete.
  kPhase,
  kState,    // in which each rank did not come up
  kWaiting,  // ranks that wait
  kMissing,  // ranks that are waited for, the one most waited for alone 1
  kCall,     // in which call
  kSize,     // ranks that came to it with another size
  kRecords,  // calls that a rank recorded and its peers did not
  kFailed,   // the rank that failed first, ranks that error texts name
  kText,     // kinds of error text
  kWhen,     // when it stopped, and when somebody said so
  kSilent,   // ranks that left neither a dump, where others did, nor a word
};

struct Change {
  double value = 0;
  double noise = 0;  // differences below this say nothing
};

using Changes = std::map<Aspect, std::map<std::string, Change>>;

// Both as observable() makes them.
[[nodiscard]] Changes changes_of(const pb::Outcome& run, const pb::Outcome& healthy);

[[nodiscard]] const char* name_of(Aspect aspect);
// Absent keys are unknown, not 0.
[[nodiscard]] bool is_measured(Aspect aspect);
// Grows with the strength of a fault.
[[nodiscard]] bool is_time(Aspect aspect);

// How many ranks wait for each, in calls in which nobody else is missing; one of several that are missing has its share
// of the blame. In a cycle of waits the cause is waited for by more than one.
[[nodiscard]] std::map<uint32_t, double> waited_for(const pb::Outcome& run);

// A wait in the call that most ranks wait in; null: nobody waits.
[[nodiscard]] const pb::Wait* stuck_call(const pb::Outcome& run);

}  // namespace rehearse::faults
