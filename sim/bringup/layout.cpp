// SPDX-License-Identifier: Apache-2.0
// Groups of a parallel layout, once a process knows its world size: Megatron and its kin make whole copies of the model
// out of the world, and refuse one that leaves a rest.
#include <fmt/format.h>

#include <algorithm>

#include "sim/bringup/states.hpp"

namespace rehearse::sim::bringup {

void divide_world(Job& job) {
  if (job.trace == nullptr || !job.trace->header.has_synth()) return;
  const pb::Synth& layout = job.trace->header.synth();
  const uint64_t model = uint64_t{std::max(1u, layout.tp())} * std::max(1u, layout.pp());
  for (const size_t p : job.started()) {
    const Process& process = job.processes[p];
    // A part of a job that was cut out of its trace keeps what it did there.
    if (process.world_size == job.launched() || process.world_size % model == 0) continue;
    Trouble trouble{.process = p, .state = "join", .error = "layout"};
    trouble.since = trouble.gives_up = process.clock;
    trouble.facts = {{"world_size", std::to_string(process.world_size)},
                     {"model", std::to_string(model)}};
    job.add(std::move(trouble));
    job.blame("configuration", 0,
              fmt::format("a world of {} does not hold a copy of the model, which is cut into {}",
                          process.world_size, model));
  }
}

}  // namespace rehearse::sim::bringup
