// SPDX-License-Identifier: Apache-2.0
// Writes a rank as a Chakra execution trace (et_def.proto of MLCommons Chakra): GlobalMetadata and nodes,
// length-delimited, one file per rank, as ASTRA-sim and Chakra's own tools read it.
//
// A node per operation: host work and GPU work are COMP nodes (is_cpu_op tells), collectives COMM_COLL,
// sends and receives COMM_SEND and COMM_RECV, annotations METADATA; process groups are listed in a
// "## process_group:init ##" node. Durations are whole microseconds of the node's own time: a host
// operation without those inside it, a waiting call from when its wait was over. data_deps give the order:
// lane, launch, event, synchronisation, and what the trace itself tells; ctrl_deps the enclosing host
// operation. Attributes "rehearse_..." hold what Chakra has no place for, so that an import gives the same
// operations back to the nanosecond. Memory events have no place in it and are left out. Pure functions.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/atomic_file.hpp"
#include "base/error.hpp"
#include "traces/model/trace.hpp"

namespace rehearse::traces {

// What all ranks of a trace share; references must outlive the call.
struct ChakraContext {
  const pb::TraceHeader& header;
  const std::vector<Communicator>& communicators;
  const Strings& strings;
};

struct ChakraWritten {
  std::filesystem::path path;
  uint64_t nodes = 0;
  uint64_t left_out = 0;  // memory events
};

// Writes "trace.<rank>.et" into `folder`, which must exist.
[[nodiscard]] Result<ChakraWritten> write_chakra(const RankTrace& rank,
                                                 const ChakraContext& context,
                                                 const std::filesystem::path& folder,
                                                 Overwrite overwrite);

// Name of a process group in the nodes: its number from 1, which is what ASTRA-sim wants.
[[nodiscard]] std::string chakra_group_name(size_t communicator);
// {"1": [0, 1, ...], ...}: ASTRA-sim's file of communicator groups.
[[nodiscard]] std::string chakra_groups_json(const std::vector<Communicator>& communicators);

}  // namespace rehearse::traces
