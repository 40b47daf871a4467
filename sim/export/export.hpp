// SPDX-License-Identifier: Apache-2.0
// A simulated run as files of other tools. Each takes a whole timeline (Detail::kTimeline) with the outcome it belongs
// to and writes as it goes, in constant memory. Calls of one group, which a lane runs side by side, stand one after
// another.
#pragma once

#include "base/atomic_file.hpp"
#include "base/error.hpp"
#include "sim/proto/outcome.pb.h"
#include "sim/proto/pictures.pb.h"

namespace rehearse::sim {

// Perfetto's native format (sim/proto/perfetto.proto): a process per rank, a track per lane, flows between the members
// of a call, counters for links and memory, culprits and changes as instants, the critical path as a track of its own.
// `pictures` may lack anything.
[[nodiscard]] Result<void> write_perfetto(const pb::Timeline& timeline, const pb::Outcome& outcome,
                                          const pb::Pictures& pictures, AtomicFile& out);

// The older JSON format that Chrome, TensorBoard and Perfetto read.
[[nodiscard]] Result<void> write_chrome(const pb::Timeline& timeline, const pb::Outcome& outcome,
                                        AtomicFile& out);

// One line per operation for spreadsheets: rank, lane, start_ns, duration_ns, kind, name, communicator, sequence. A name
// that a spreadsheet would take for a formula gets a ' before it.
[[nodiscard]] Result<void> write_csv(const pb::Timeline& timeline, AtomicFile& out);

}  // namespace rehearse::sim
