// SPDX-License-Identifier: Apache-2.0
// What each rank would have written with NCCL_DEBUG=INFO while it came up: interface, network devices, variables,
// then for each of its communicators start, rings, trees, connections with their transport, and the end. A job that
// does not come up logs as far as it got, with its warnings. Pointers, process ids and communicator ids are made up
// and the same in every run; our own importer reads the text back (traces/import/nccl_log).
#pragma once

#include <string>
#include <vector>

#include "base/error.hpp"
#include "sim/scenario/scenario.hpp"

namespace rehearse::sim::bringup {

struct RankLog {
  uint32_t rank = 0;
  std::string text;
};

// One per process that was started, by rank. Empty for backends other than NCCL.
[[nodiscard]] Result<std::vector<RankLog>> nccl_logs(const Scenario& scenario);

}  // namespace rehearse::sim::bringup
