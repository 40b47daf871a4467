// SPDX-License-Identifier: Apache-2.0
// What is in a trace, in one pass: how large it is, who called which collective, where the time of
// each rank went, who came last, and what does not fit together. Memory grows with the number of
// distinct collectives, not with the operations. Deterministic; plain data.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/finding.hpp"
#include "base/reporter.hpp"
#include "traces/model/rtrace.hpp"
#include "traces/model/trace.hpp"
#include "traces/program/program.hpp"

namespace rehearse::traces {

struct InspectOptions {
  // Only this rank's operations and times, and the collectives that it took part in.
  std::optional<RankId> rank{};
  // Only what started inside this step (on each rank's own clock of steps).
  std::optional<int64_t> step{};
  // Fill Inspection::matched.
  bool list_collectives = false;
  size_t top_kernels = 10;
};

// A collective is counted once, however many ranks call it; a call is one rank's part. Bytes are
// those of the larger buffer of the largest part, once per collective.
struct CollectiveTotals {
  uint64_t collectives = 0;
  uint64_t calls = 0;
  Bytes bytes = 0;
  // Of collectives that end only after their last member came and whose members are all recorded:
  // time from each start to the last one, summed over ranks, and from the last start to the last end.
  Nanos wait = 0, transfer = 0;
};
// By Collective; a send and its receive are one collective of kind kSend.
using TotalsByType = std::array<CollectiveTotals, kCollectives>;

struct CommunicatorFacts {
  std::string id, description, backend;
  std::vector<RankId> members;
  size_t recorded = 0;  // members whose operations are in the trace
  TotalsByType totals{};
};

// Time of one rank inside its steps, over all its streams. Compute is the union of kernels, copies
// and memsets; exposed is communication while no compute runs; compute + exposed + idle = window.
struct RankTimes {
  RankId rank = 0;
  std::string host;
  std::string gpu_model;
  uint64_t operations = 0;
  uint64_t steps = 0;
  Nanos window = 0;  // sum of its steps; from first to last stream operation when there are none
  Nanos compute = 0;
  Nanos exposed = 0;
  Nanos overlapped = 0;  // communication while compute runs; part of compute
  Nanos idle = 0;
  // Of its program (traces/program), over the whole recording.
  uint64_t edges = 0, inferred_edges = 0;
  HostTime host_time{};
};

// How often a rank was the last of all recorded members to start a collective.
struct LastArriver {
  RankId rank = 0;
  uint64_t times = 0;
  Nanos after_first = 0;  // sum of its start minus the first start
  Nanos after_next = 0;   // sum of its start minus that of the last but one
};

struct MatchedCollective {
  uint32_t communicator = 0;
  int64_t sequence = 0;
  Collective collective = Collective::kAllReduce;
  Bytes bytes = 0;
  uint32_t ranks = 0;  // that called it
  Nanos first_start = 0, last_start = 0;
  RankId last_arriver = 0;  // the lowest of those that started last
  Nanos first_end = 0, last_end = 0;
  Nanos wait = -1;  // sum over ranks up to the last start; -1: members are missing, or they do not
                    // wait for each other
  Nanos transfer = -1;  // from the last start to the last end
};

struct KernelTotal {
  std::string name;
  uint64_t count = 0;
  Nanos total = 0;
};

struct StepTimes {
  uint64_t per_rank = 0;  // the most that a rank has
  uint64_t least = 0;     // the fewest that a rank has
  Nanos mean = 0, p50 = 0, p99 = 0;
  std::map<int64_t, Nanos> longest;  // by number of the step: on the rank that took longest
};

struct Inspection {
  pb::TraceHeader header;
  InspectOptions options;
  std::vector<RankId> ranks;  // recorded, ascending
  uint64_t operations = 0;
  uint64_t collectives = 0;     // distinct (communicator, sequence)
  uint64_t point_to_point = 0;  // pairs of send and receive, or halves whose peer is not recorded
  uint64_t nccl_kernels = 0;    // on streams; one does all calls of a group
  uint64_t edges = 0, inferred_edges = 0;  // of the programs of its ranks
  std::array<uint64_t, kOpKinds> by_kind{};
  StepTimes steps;
  std::map<std::string, uint64_t> gpus;  // model -> ranks; "unknown" where none was recorded
  std::vector<CommunicatorFacts> communicators;
  TotalsByType totals{};
  std::vector<KernelTotal> kernels;  // most time first
  std::vector<RankTimes> times;      // by rank
  std::vector<LastArriver> late;     // most time after the next one first
  std::vector<MatchedCollective>
      matched;                         // by (first start, communicator, sequence); when asked for
  std::vector<pb::Evidence> evidence;  // that came with the trace, or all there is
  Findings findings;                   // of the import, of the reader and of the inspection
};

// Takes ranks one after another, in ascending order.
class Inspector {
 public:
  // Strings and communicators are used until finish(); `ranks` are those that will be added,
  // ascending.
  Inspector(const pb::TraceHeader& header, const Strings& strings,
            const std::vector<Communicator>& communicators, const std::vector<RankId>& ranks,
            const InspectOptions& options);
  Inspector(Inspector&&) noexcept;
  Inspector& operator=(Inspector&&) noexcept;
  ~Inspector();
  void add(const RankTrace& rank);
  // kUsage when the rank or step of the options is not in the trace.
  [[nodiscard]] Result<Inspection> finish();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

[[nodiscard]] Result<Inspection> inspect(const RtraceReader& reader, const InspectOptions& options,
                                         Reporter& reporter);
[[nodiscard]] Result<Inspection> inspect(const Trace& trace, const InspectOptions& options);

// The document rehearse.inspect/1.
[[nodiscard]] nlohmann::ordered_json to_json(const Inspection& inspection);
// Tables of at most `width` columns; the first line says what the trace is.
[[nodiscard]] std::string to_text(const Inspection& inspection, int width);

}  // namespace rehearse::traces
