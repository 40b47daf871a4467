// SPDX-License-Identifier: Apache-2.0
#include "sim/prepared.hpp"

#include "platforms/model/links.hpp"
#include "sim/nccl/traffic.hpp"

namespace rehearse::sim {

void prepare(Scenario& scenario) {
  auto program = traces::build_program(*scenario.trace);
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
  const bool ready = scenario.prepared != nullptr && scenario.prepared->trace == scenario.trace;
  if (ready) return scenario.prepared->program;
  return traces::build_program(*scenario.trace);
}

}  // namespace rehearse::sim
