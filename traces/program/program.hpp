// SPDX-License-Identifier: Apache-2.0
// The Program: the replayable form of a trace. A lane is a strictly ordered queue (a host thread, a
// CUDA stream, the NCCL proxy). An operation starts when its lane is free and its predecessors on
// other lanes have ended, then spends `gap` (work of the lane itself that no operation shows: Python
// between two launches, the time from launch to start) and `duration`. Collectives have no duration:
// the replay computes it.
//
// Edges, all inside one rank (ranks meet only in calls):
//   launch   host call -> the stream operations with its correlation id (a graph launch: all its
//            kernels)
//   event    last operation enqueued before cudaEventRecord -> first one enqueued after
//            cudaStreamWaitEvent
//   sync     last operations enqueued -> the host call that waited for them
//   handover last host call that ended on another thread -> a host call that started after an idle
//            time of its own thread (inferred: Python hands over to the autograd thread and back)
//   told     what the recording itself names (Operations::dependencies); host operations that it
//            names are operations here too
// Where a trace does not record events or synchronisation, event and sync edges are inferred from
// what frameworks do and from times (infer_streams.hpp, infer_host.hpp); every inferred edge is
// marked. Framework operators and annotations are not operations here: their time is in the gaps of
// host lanes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/finding.hpp"
#include "base/units.hpp"
#include "traces/model/trace.hpp"
#include "traces/program/column.hpp"

namespace rehearse::traces {

constexpr OpId kNoOp = UINT32_MAX;
constexpr uint32_t kNoCall = UINT32_MAX;

// Time of the host threads of a rank between its calls. Blocked time is not in the gaps: edges
// explain it. Unknown time is neither covered by a recorded operator nor explained; as work it hides
// gains of a faster network, as wait it invents them.
struct HostTime {
  Nanos work = 0;
  Nanos blocked = 0;
  Nanos unknown = 0;
};

// Recorded duration of a call, split by who came last. -1: not known (members are missing, or the
// call does not synchronise its members).
struct CallSplit {
  Nanos wait = -1;      // for members that started later
  Nanos transfer = -1;  // from the last start to this rank's end
};

// The operations that one waits for. A view: valid as long as its program is not changed.
class Predecessors {
 public:
  struct iterator {
    using iterator_category = std::forward_iterator_tag;
    using value_type = OpId;
    using difference_type = std::ptrdiff_t;
    using pointer = const OpId*;
    using reference = OpId;
    const OpId* at = nullptr;
    const Repeat* repeat = nullptr;
    uint32_t copy = 0;
    OpId operator*() const { return repeat == nullptr ? *at : repeat->place(*at, copy); }
    iterator& operator++() {
      ++at;
      return *this;
    }
    iterator operator++(int) { return {at++, repeat, copy}; }
    bool operator==(const iterator& other) const { return at == other.at; }
  };
  Predecessors(const OpId* first, const OpId* last, const Repeat* repeat, uint32_t copy)
      : first_{first, repeat, copy}, last_{last, repeat, copy} {}
  [[nodiscard]] iterator begin() const { return first_; }
  [[nodiscard]] iterator end() const { return last_; }
  [[nodiscard]] size_t size() const { return static_cast<size_t>(last_.at - first_.at); }
  [[nodiscard]] bool empty() const { return first_ == last_; }
  [[nodiscard]] OpId operator[](size_t i) const {
    return *iterator{first_.at + i, first_.repeat, first_.copy};
  }

 private:
  iterator first_, last_;
};

// An operation that moves bytes over links that others use too but meets no other rank: copies between memories, and
// what patches add (sim/scenario). A replay may compute its time; its recorded duration holds otherwise.
enum class Way : uint8_t {
  kHostToDevice,
  kDeviceToHost,
  kPeer,     // to another GPU of the node
  kLoad,     // storage to host memory
  kRestore,  // storage to GPU memory
  kSave,     // GPU memory to storage
};
[[nodiscard]] const char* name_of(Way way);  // "copy to device", "checkpoint write"
[[nodiscard]] inline bool is_storage(Way way) {
  return way == Way::kLoad || way == Way::kRestore || way == Way::kSave;
}
struct Transfer {
  OpId op = kNoOp;
  Way way = Way::kHostToDevice;
  bool pageable = false;  // staged through memory of the driver
  Bytes bytes = 0;
  uint32_t storage = 0;  // kLoad, kRestore, kSave: index into Program::storages
};

// Operations of one rank, lane by lane: those of lane l are [lane_begin[l], lane_begin[l+1]).
struct RankProgram {
  RankId rank = 0;
  Nanos begin = 0;  // when its lanes begin, once: ranks that were recorded later begin later
  std::vector<Lane> lanes;
  std::vector<OpId> lane_begin;
  Column<OpKind> kind;
  Column<uint32_t> name;
  Column<Nanos> gap;
  Column<Nanos> duration;
  Column<uint32_t> call;     // index into calls, or kNoCall
  Column<uint16_t> overlap;  // share of a kernel recorded beside a call (overlap.hpp); or empty
  // Predecessors of written operation o are edges[edge_begin[o] .. edge_begin[o+1]); see predecessors().
  Column<uint32_t> edge_begin;
  Column<OpId> edges;
  std::vector<bool> edge_inferred;       // by entry of edges
  std::shared_ptr<const Repeat> repeat;  // of the steps; null: every operation is written down
  std::vector<Call> calls;               // in the order the host issued them
  std::vector<OpId> call_op;             // the operation of each call
  std::vector<CallSplit> call_split;     // by entry of calls; empty when built alone
  std::vector<Transfer> transfers;       // ascending by op
  // First operation of each lane that belongs to step s or later: step_begin[lane * (steps + 1) +
  // s]; the last entry of a lane is the first one after all steps. Operations before it belong to
  // no step.
  std::vector<OpId> step_begin;
  uint64_t inferred_edges = 0;
  HostTime host;
  std::vector<std::pair<OpId, Nanos>> unknown_gaps;  // part of gap[op] that is unknown; ascending

  [[nodiscard]] size_t size() const { return kind.size(); }
  [[nodiscard]] LaneId lane_of(OpId op) const {
    return static_cast<LaneId>(std::upper_bound(lane_begin.begin(), lane_begin.end(), op) -
                               lane_begin.begin() - 1);
  }
  [[nodiscard]] Predecessors predecessors(OpId op) const {
    const Repeat::Place at = repeat == nullptr ? Repeat::Place{op, 0} : repeat->locate(op);
    return {edges.data() + edge_begin[at.source], edges.data() + edge_begin[at.source + 1],
            repeat.get(), at.copy};
  }
  // Whether entry i of predecessors(op) was inferred.
  [[nodiscard]] bool inferred(OpId op, size_t i) const {
    if (edge_inferred.empty()) return false;
    return edge_inferred[edge_begin[repeat == nullptr ? op : repeat->locate(op).source] + i];
  }
  // Null when the operation is no transfer.
  [[nodiscard]] const Transfer* transfer(OpId op) const;
  [[nodiscard]] bool on_gpu(LaneId lane) const { return lanes[lane].kind == LaneKind::kStream; }
};

struct Program {
  std::vector<RankProgram> ranks;  // ascending; position = index used by the replay
  std::vector<Communicator> communicators;
  std::vector<std::string> storages;  // names that transfers refer to; "": any
  uint32_t steps = 0;                 // steps that every rank has
  Findings findings;

  [[nodiscard]] size_t operations() const;
  // Position of a rank in `ranks`, or -1.
  [[nodiscard]] int find(RankId rank) const;
};

enum class InferredEdges { kKeep, kDrop };
enum class UnknownGaps { kWork, kNone };  // kNone: as if they had been waits that are gone

// The two bounds of what a trace does not say; a what-if that is the same under both does not depend
// on it.
struct ProgramOptions {
  InferredEdges inferred = InferredEdges::kKeep;
  UnknownGaps unknown_gaps = UnknownGaps::kWork;
};

// Builds the program of a whole trace. Oddities (work without a launch, waits on unknown events)
// are findings.
[[nodiscard]] Result<Program> build_program(const Trace& trace);
[[nodiscard]] Result<Program> build_program(const Trace& trace, const ProgramOptions& options);
// The same for one rank, of which `steps` steps count.
[[nodiscard]] Result<RankProgram> build_rank_program(const RankTrace& rank, uint32_t steps,
                                                     Findings& findings);
[[nodiscard]] Result<RankProgram> build_rank_program(const RankTrace& rank, uint32_t steps,
                                                     const ProgramOptions& options,
                                                     Findings& findings);

}  // namespace rehearse::traces
