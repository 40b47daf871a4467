// SPDX-License-Identifier: Apache-2.0
#include "sim/scenario/alone.hpp"

#include <fmt/format.h>

#include <map>

namespace rehearse::sim {

void separate_ranks(traces::Program& program) {
  const std::vector<traces::Communicator> shared = program.communicators;
  program.communicators.clear();
  for (traces::RankProgram& rank : program.ranks) {
    std::map<uint32_t, uint32_t> own;  // of this rank, by the shared one
    std::map<uint32_t, int64_t> calls;
    for (traces::Call& call : rank.calls) {
      const auto [at, fresh] =
          own.emplace(call.communicator, static_cast<uint32_t>(program.communicators.size()));
      if (fresh) {
        traces::Communicator alone = shared[call.communicator];
        alone.id = fmt::format("{} of rank {}", alone.id, rank.rank);
        alone.members = {rank.rank};
        program.communicators.push_back(std::move(alone));
      }
      call.communicator = at->second;
      call.peer = call.peer < 0 ? -1 : 0;
      // There is nobody to send to or to receive from.
      if (traces::is_point_to_point(call.collective)) {
        call.collective = traces::Collective::kBarrier;
        call.peer = -1;
      }
      call.sequence = calls[at->second]++;
    }
  }
}

}  // namespace rehearse::sim
