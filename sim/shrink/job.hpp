// SPDX-License-Identifier: Apache-2.0
// A scenario taken apart, so that parts of it can be left out: ranks, nodes, steps, collectives, single operations,
// allocations, settings and patches. Transforms of the program have become operations; a job is put together again as a
// scenario and a trace, and that is what is simulated and written.
//
// What is kept of time: durations, the order in lanes and what waits for what. Gaps between operations are left out, and
// what waited for an operation that is gone waits for what that waited for. Calls are numbered anew, in order.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "sim/scenario/scenario.hpp"
#include "traces/program/program.hpp"

namespace rehearse::sim {

struct JobOp {
  uint32_t lane = 0;
  traces::OpKind kind = traces::OpKind::kLaunch;
  uint32_t name = 0;  // of Job::source
  int step = -1;      // -1: before the first; as many as there are: behind the last
  Nanos duration = 0;
  std::optional<traces::Call> call;    // its sequence is found anew
  std::optional<traces::Copy> copy;    // between memories
  std::optional<traces::RankId> peer;  // of the call: root, sender or receiver
  std::vector<uint32_t> after;         // of other lanes, ascending: positions in JobRank::ops
};

struct JobAllocation {
  uint32_t name = 0;
  traces::Memory memory;
  int step = -1;
};

struct JobRank {
  traces::RankId rank = 0;  // in the scenario that was taken apart; so are nodes
  pb::RankLaunch seat;
  std::vector<traces::Lane> lanes;
  std::vector<JobOp> ops;  // in an order in which they can be done
  std::vector<JobAllocation> allocations;
  uint32_t steps = 0;  // that it has; others may have more
};

// A field of the platform that is not as the platform was written.
struct Setting {
  int node = -1;  // -1: of no node
  std::string path, value;
};

struct Job {
  std::shared_ptr<const traces::Trace> source;
  pb::Scenario document;  // platform and launch as written, without ranks
  std::vector<JobRank> ranks;
  std::vector<uint32_t> nodes;
  uint32_t nodes_before = 0;                        // of the scenario that was taken apart
  uint32_t gpus_per_node = 0;                       // 0: nodes differ, none can be left out
  std::vector<traces::Communicator> communicators;  // members are ranks of the scenario taken apart
  std::vector<Setting> settings;
  std::vector<pb::Patch> patches;  // that act on the run: of ranks and nodes taken apart
  uint32_t steps = 0;
  int missing = 0;  // processes that the launch counts beyond those there are
};

// kCalls: of the operations only calls are kept.
enum class Kept { kCalls, kEverything };
// kBadInput when the scenario cannot be written down so (replicas of grow-data-parallel); kLimit when it is too large.
[[nodiscard]] Result<Job> take_apart(const Scenario& scenario, Kept kept);

// Something that can be left out.
struct Part {
  enum class Kind {
    kRank,
    kNode,
    kStep,
    kCollective,
    kOperation,
    kAllocation,
    kSetting,
    kVariable,
    kPatch
  };
  Kind kind = Kind::kRank;
  uint32_t id = 0;        // rank, node, step, or a position
  std::string name = {};  // of a variable
  // Operations: position in Job::ranks and in JobRank::ops.
  std::vector<std::pair<uint32_t, uint32_t>> ops = {};
};
[[nodiscard]] const char* name_of(Part::Kind kind);  // "rank", "collective"
[[nodiscard]] std::vector<Part> parts_of(const Job& job, Part::Kind kind);

// The job without these parts, all of one kind. Calls that are left with nobody to meet go too; ranks of a node that goes
// move to free GPUs of another. None: there would be no rank, no node or no room left.
[[nodiscard]] std::optional<Job> without(const Job& job, std::span<const Part> parts);

struct JobSize {
  size_t ranks = 0, nodes = 0, steps = 0, operations = 0, most_per_rank = 0, patches = 0;
};
[[nodiscard]] JobSize size_of(const Job& job);

// Put together: a document as it is written to a file (its patches inside, its trace not named) and the trace.
struct Rendered {
  pb::Scenario document;
  std::shared_ptr<const traces::Trace> trace;
};
[[nodiscard]] Rendered render(const Job& job);
// As it is loaded from such files.
[[nodiscard]] Result<Scenario> assemble(const Rendered& rendered);

// Fields of the document's platform that differ from the platform as it was written and expanded. None: they cannot be
// told by assignments.
[[nodiscard]] std::optional<std::vector<Setting>> settings_of(const Scenario& scenario);

}  // namespace rehearse::sim
