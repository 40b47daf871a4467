// SPDX-License-Identifier: Apache-2.0
// The steps that turn one recorded rank into a program; each works on the draft the one before left.
#pragma once

#include "traces/program/draft.hpp"

namespace rehearse::traces {

// Operations lane by lane in recorded order, without edges.
void lay_out(Draft& draft);
// Walks the host calls in order of time, remembers what is enqueued where, and adds the edges of
// launches, events, synchronisation and hand-over.
void connect(Draft& draft, Findings& findings);
// Edges by operation. Edges that close a circle are left out, inferred ones first, with a finding.
void finish_edges(Draft& draft, InferredEdges inferred, Findings& findings);
// gap = what remains between the last predecessor's recorded end and the recorded start; what of it
// is work, and what of a thread's idle time edges explain.
void measure_gaps(Draft& draft, UnknownGaps unknown);
// First operation of each step on each lane.
void place_steps(Draft& draft, uint32_t steps);

}  // namespace rehearse::traces
