// SPDX-License-Identifier: Apache-2.0
// What one input file gives, before the files are merged into one trace (merge.hpp). A reader fills
// a FilePart; names of operations are interned in the Strings it is handed, which all files share.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/finding.hpp"
#include "base/reporter.hpp"
#include "traces/import/limits.hpp"
#include "traces/import/source.hpp"
#include "traces/model/trace.hpp"

namespace rehearse::pb {
class TableMapping;
}

namespace rehearse::traces {

// Where a rank stands in a communicator whose members the file does not tell.
constexpr int64_t kUnknownPlace = -2;
struct CommunicatorPlace {
  uint32_t size = 0;  // ranks in it; 0: not recorded
  int64_t position =
      -1;  // of this rank in it; kUnknownPlace: not recorded, but its id is the same on
           // all members; -1: nothing is known
};

// One rank as one file tells it. `trace.ops.calls[i].communicator` is an index into `communicators`
// here.
struct RankPart {
  RankTrace trace;
  // False when the file does not tell its rank: trace.rank is then chosen by the merge.
  bool rank_known = true;
  // The file says that nobody recorded this rank: it is a clone of that one (--assume-symmetric).
  std::optional<RankId> cloned_from;
  // Another file may tell what this rank did before or after (rotated timelines): both are kept.
  bool may_continue = false;
  // A communicator without members stands for all ranks of the job.
  std::vector<Communicator> communicators;
  // Per communicator: named by calls, but nobody says who is in it. When all ranks of the job are here,
  // those that call on it are. Empty: of none.
  std::vector<bool> members_unknown;
  // Per entry of communicators; may be empty. Members are then found from the places of all ranks with
  // the same communicator id (members.hpp).
  std::vector<CommunicatorPlace> places;
  // Sequence number as the framework recorded it, per entry of trace.ops.calls; -1: not recorded.
  // May be empty. Call::sequence itself is the order of launch and is assigned by the merge.
  std::vector<int64_t> recorded_sequence;
  // Time of the launching host call per entry of trace.ops.calls; empty: order of start is used.
  std::vector<Nanos> launched;
  // Bytes are recorded or were derived, per entry of trace.ops.calls; empty: all are recorded.
  std::vector<bool> sized;
  // The file tells the communicator, per entry of trace.ops.calls; empty: of all. Where it does not, an
  // execution trace of the same rank may.
  std::vector<bool> grouped;
  // bytes_in and bytes_out both hold one rank's message as NCCL counts it, per entry of trace.ops.calls;
  // the merge makes buffers of it once the number of members is known. May be empty: none do.
  std::vector<bool> message_only;
};

// Sizes of the collectives of one rank in the order of their calls, from a file that has no times
// (an execution trace); joined with the RankPart of the same rank.
struct CallSizes {
  std::optional<RankId> rank;
  std::string file;
  struct Row {
    Collective collective = Collective::kAllReduce;
    Bytes bytes_in = 0;
    Bytes bytes_out = 0;
    DType dtype = DType::kUnknown;
    int32_t peer = -1;        // root or other end as a place in the group; -1: none
    std::string group;        // name of the process group, "" when not recorded
    uint32_t group_size = 0;  // 0: not recorded
  };
  std::vector<Row> rows;
  // Process groups that the rows name. One without members is of all ranks, or nobody says of whom.
  std::vector<Communicator> groups;
};

struct FilePart {
  std::string format;  // name of the format as in the table of formats
  std::string file;
  std::vector<RankPart> ranks;
  std::vector<CallSizes> sizes;        // each joined with a rank, or standing alone beside `ranks`
  std::vector<pb::Evidence> evidence;  // of logs, dumps and tables; attaches to the trace
  std::optional<uint32_t> world_size;
  std::string framework;
  std::string job;
  std::string nccl_version;
  bool synthetic = false;  // nothing in it was measured, it says
  // Why nothing in it is of use, where the file is whole and of this format all the same. Such a file is
  // refused when it was named, and passed over with a finding inside a folder.
  std::optional<Error> unused;
  // A whole trace (.rtrace): nothing is left to merge. At most one such file per import.
  std::optional<Trace> whole;
};

enum class CutFiles { kRefuse, kAccept };

struct ReadContext {
  Strings& strings;
  Findings& findings;
  Reporter& reporter;
  CutFiles cut_files = CutFiles::kRefuse;
  // What the columns of tables are, when the user says so; null: the shipped mappings.
  const pb::TableMapping* table = nullptr;
  uint64_t most_held = kMostHeld;  // bytes
};

}  // namespace rehearse::traces
