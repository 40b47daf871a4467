// SPDX-License-Identifier: Apache-2.0
#include "sim/prepared.hpp"

#include <algorithm>

#include "platforms/model/links.hpp"
#include "sim/fabric/fabric.hpp"
#include "sim/nccl/traffic.hpp"

namespace rehearse::sim {
namespace {

// Ranks that were recorded on one clock begin when they began: who is late at the start is waited for.
void keep_start_skew(const traces::Trace& trace, traces::Program& program) {
  Nanos first = INT64_MAX, shortest = INT64_MAX;
  for (const traces::RankTrace& rank : trace.ranks) {
    if (rank.ops.size() == 0) return;
    const Nanos begin = rank.ops.start.front();
    first = std::min(first, begin);
    shortest = std::min(shortest, rank.ops.start.back() - begin);
  }
  for (const traces::RankTrace& rank : trace.ranks) {
    // Recordings that do not overlap are of different times or clocks: their starts say nothing.
    if (rank.ops.start.front() - first > shortest) return;
  }
  for (size_t r = 0; r < program.ranks.size(); ++r) {
    program.ranks[r].begin = trace.ranks[r].ops.start.front() - first;
  }
}

Result<traces::Program> built(const traces::Trace& trace) {
  RH_TRY(traces::Program program, traces::build_program(trace));
  keep_start_skew(trace, program);
  return program;
}

bool is_prepared(const Scenario& scenario) {
  return scenario.prepared != nullptr && scenario.prepared->trace == scenario.trace;
}

}  // namespace

void prepare(Scenario& scenario) {
  start_simgrid();
  auto program = built(*scenario.trace);
  if (!program) return;
  auto out = std::make_shared<Prepared>(Prepared{scenario.trace, std::move(*program), {}});
  const pb::Platform& platform = scenario.document.platform();
  if (const auto links = platforms::Links::build(platform)) {
    NodeGraphCache cache(platform);
    const ModelContext context{platform, *links, scenario.document.launch(), &cache};
    for (const traces::Communicator& communicator : out->program.communicators) {
      if (!CommunicatorModel::create(context, communicator)) break;
    }
    out->graphs = cache.known();
  }
  scenario.prepared = std::move(out);
}

Result<traces::Program> program_of(const Scenario& scenario) {
  if (is_prepared(scenario)) return scenario.prepared->program;
  return built(*scenario.trace);
}

Result<std::shared_ptr<const traces::Program>> shared_program(const Scenario& scenario) {
  if (is_prepared(scenario)) {
    return std::shared_ptr<const traces::Program>(scenario.prepared, &scenario.prepared->program);
  }
  RH_TRY(traces::Program program, built(*scenario.trace));
  return std::make_shared<const traces::Program>(std::move(program));
}

}  // namespace rehearse::sim
