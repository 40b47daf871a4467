// SPDX-License-Identifier: Apache-2.0
// Writes a rank as the PyTorch profiler (Kineto) writes it: Chrome JSON with decimal microseconds,
// one file per rank. Spelling of 2025: collective arguments on the kernel, process groups in
// distributedInfo, launches joined by correlation and ac2g flows, event waits as cuda_sync,
// allocations as [memory]. What Kineto has no place for is lost: reductions, ncclGroup numbers, the
// stream of an event nobody waits for. A trace that was not measured says so in "traceName" and
// "synthetic". Pure functions.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/atomic_file.hpp"
#include "base/error.hpp"
#include "traces/model/trace.hpp"

namespace rehearse::traces {

// What all ranks of a trace share; references must outlive the call.
struct KinetoContext {
  const pb::TraceHeader& header;
  const std::vector<Communicator>& communicators;
  const Strings& strings;
};

// The whole file as text. Times are those of the rank, baseTimeNanoseconds is 0.
[[nodiscard]] std::string kineto_json(const RankTrace& rank, const KinetoContext& context);

enum class Compression { kNone, kGzip };

// Writes "rank<N>.json" or "rank<N>.json.gz" into `folder`, which must exist, and returns its path.
[[nodiscard]] Result<std::filesystem::path> write_kineto(const RankTrace& rank,
                                                         const KinetoContext& context,
                                                         const std::filesystem::path& folder,
                                                         Compression compression,
                                                         Overwrite overwrite);

}  // namespace rehearse::traces
