// SPDX-License-Identifier: Apache-2.0
// What the variants of one scenario have in common, computed once in the process that they are forked from: the program
// of the trace, and what NCCL's search finds on the nodes. A run does with it exactly what it does without.
#pragma once

#include <memory>

#include "sim/nccl/node_graphs.hpp"
#include "sim/scenario/scenario.hpp"
#include "traces/program/program.hpp"

namespace rehearse::sim {

struct Prepared {
  std::shared_ptr<const traces::Trace> trace;  // that `program` is of
  traces::Program program;
  NodeGraphCache::Known graphs;
};

// Fills Scenario::prepared, which copies of the scenario share, and starts the engine for children. What cannot be computed
// is left out: the run says why.
void prepare(Scenario& scenario);

// Of the scenario's trace, ranks beginning as they were recorded: a copy of the prepared one, or built anew. Shared: the
// prepared one itself.
[[nodiscard]] Result<traces::Program> program_of(const Scenario& scenario);
[[nodiscard]] Result<std::shared_ptr<const traces::Program>> shared_program(
    const Scenario& scenario);

}  // namespace rehearse::sim
