// SPDX-License-Identifier: Apache-2.0
// A Trace: what each rank of a real (or generated) run did, in columns. One RankTrace per rank; names
// are interned once per trace; communicators are shared by all ranks. Nothing here interprets: edges,
// matching and steps that were not recorded are the Program's business (traces/program).
// Plain data; not thread-safe while being filled.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/units.hpp"
#include "traces/proto/evidence.pb.h"
#include "traces/proto/trace.pb.h"

namespace rehearse::traces {

using RankId = uint32_t;
using LaneId = uint32_t;  // index into RankTrace::lanes

// What an operation is. The number is stored in files: never reuse one.
enum class OpKind : uint8_t {
  kHost = 0,    // work of a host thread: framework operator, Python, data loading
  kLaunch = 1,  // host call that puts work on a stream; correlation names that work
  kKernel = 2,  // compute kernel on a stream
  kCopy = 3,    // memory copy on a stream (detail: Copy)
  kMemset = 4,  // on a stream
  kCall = 5,    // collective or point-to-point on a stream or host lane (detail: Call)
  kSync = 6,    // event record/wait, stream/event/device synchronise (detail: Sync), a host call
  kMemory = 7,  // allocation or free at an instant (detail: Memory)
  kAnnotation = 8,   // a named range that does no work itself (profiler step, user range)
  kGraphLaunch = 9,  // host call that launches a CUDA graph; its kernels share the correlation
};
constexpr int kOpKinds = 10;
[[nodiscard]] const char* name_of(OpKind kind);

enum class LaneKind : uint8_t { kHostThread = 0, kStream = 1, kProxy = 2 };

enum class Collective : uint8_t {
  kAllReduce = 0,
  kAllGather = 1,
  kReduceScatter = 2,
  kBroadcast = 3,
  kReduce = 4,
  kAllToAll = 5,
  kGather = 6,
  kScatter = 7,
  kBarrier = 8,
  kSend = 9,
  kRecv = 10,
};
constexpr int kCollectives = 11;
[[nodiscard]] const char* name_of(Collective collective);  // "all_reduce", ...
[[nodiscard]] inline bool is_point_to_point(Collective c) {
  return c == Collective::kSend || c == Collective::kRecv;
}

enum class DType : uint8_t {
  kUnknown = 0,
  kInt8,
  kUint8,
  kInt32,
  kUint32,
  kInt64,
  kUint64,
  kFp16,
  kBf16,
  kFp32,
  kFp64,
  kFp8,
  kBool,
};
[[nodiscard]] const char* name_of(DType dtype);
[[nodiscard]] int size_of(DType dtype);  // bytes of one element; 0 for kUnknown

enum class Reduction : uint8_t { kNone = 0, kSum, kAverage, kMin, kMax, kProduct };

// One collective or point-to-point call as one rank made it.
struct Call {
  uint32_t communicator = 0;  // index into Trace::communicators
  int64_t sequence = 0;  // position among this rank's collectives on that communicator (send/recv
                         // count separately per (peer, direction)), from 0
  Collective collective = Collective::kAllReduce;
  Bytes bytes_in = 0;   // bytes of this rank's send buffer
  Bytes bytes_out = 0;  // bytes of this rank's receive buffer
  DType dtype = DType::kUnknown;
  Reduction reduction = Reduction::kNone;
  int32_t peer = -1;   // root or peer as index into the communicator's members; -1: none
  uint64_t group = 0;  // calls of one ncclGroupStart/End share a number; 0: alone
};

enum class CopyDirection : uint8_t {
  kUnknown = 0,
  kHostToDevice,
  kDeviceToHost,
  kDeviceToDevice,
  kPeer
};
struct Copy {
  CopyDirection direction = CopyDirection::kUnknown;
  Bytes bytes = 0;
};

// kRecord and kWaitEvent are enqueued on `stream_lane`; the others block the calling host lane.
enum class SyncKind : uint8_t { kRecord = 0, kWaitEvent, kEvent, kStream, kDevice };
struct Sync {
  SyncKind sync = SyncKind::kDevice;
  int32_t stream_lane = -1;  // -1: unknown or not applicable
  uint64_t event = 0;        // 0: not recorded
};

struct Memory {
  Bytes bytes = 0;       // positive: allocated
  uint64_t address = 0;  // an id, never a pointer of the recorded process
};

struct Lane {
  LaneKind kind = LaneKind::kHostThread;
  int64_t id = 0;     // thread id or stream number as recorded
  uint32_t name = 0;  // string id
};

struct Step {
  int64_t number = 0;
  Nanos start = 0;
  Nanos end = 0;
};

// An order that the recording itself tells and that no lane, launch or event shows: `op` starts after
// `on` has ended. Both are indices of operations, `on` the smaller one.
struct Dependency {
  uint32_t op = 0;
  uint32_t on = 0;
  // NOLINTNEXTLINE(modernize-use-nullptr): a comparison with 0
  auto operator<=>(const Dependency&) const = default;
};

// The operations of one rank in columns, ordered by (start, lane, order of recording).
struct Operations {
  std::vector<OpKind> kind;
  std::vector<uint16_t> lane;
  std::vector<uint32_t> name;  // string id
  std::vector<Nanos> start;
  std::vector<Nanos> duration;
  std::vector<int64_t> correlation;  // links a launch with its GPU work; 0: none
  std::vector<uint32_t> detail;      // index + 1 into the table of its kind below; 0: none
  std::vector<Call> calls;
  std::vector<Copy> copies;
  std::vector<Sync> syncs;
  std::vector<Memory> memory;
  std::vector<Dependency> dependencies;  // ascending

  [[nodiscard]] size_t size() const { return kind.size(); }
  void reserve(size_t n);
  // Appends one operation without detail and returns its index.
  size_t add(OpKind k, LaneId l, uint32_t name_id, Nanos begin, Nanos length, int64_t corr = 0);
  size_t add_call(LaneId l, uint32_t name_id, Nanos begin, Nanos length, int64_t corr,
                  const Call& c);
  size_t add_copy(LaneId l, uint32_t name_id, Nanos begin, Nanos length, int64_t corr,
                  const Copy& c);
  size_t add_sync(LaneId l, uint32_t name_id, Nanos begin, Nanos length, int64_t corr,
                  const Sync& s);
  size_t add_memory(LaneId l, uint32_t name_id, Nanos at, const Memory& m);
  [[nodiscard]] const Call* call(size_t op) const;
  [[nodiscard]] const Sync* sync(size_t op) const;
  [[nodiscard]] const Copy* copy(size_t op) const;
  [[nodiscard]] const Memory* mem(size_t op) const;
  // Restores the order (start, lane, recorded order), of dependencies too; importers call it once at
  // the end. A dependency may then point forward, when its times contradict it.
  void sort();
};

struct RankTrace {
  RankId rank = 0;
  std::string host;
  uint32_t gpu = 0;
  std::string gpu_model;
  Bytes gpu_memory = 0;
  uint32_t visible_gpus = 0;  // that the process could see; 0: not told
  std::map<std::string, std::string> env;
  Nanos clock_offset = 0;  // was added to all times here to align them with those of other ranks
  std::vector<Lane> lanes;
  std::vector<Step> steps;
  Operations ops;
};

struct Communicator {
  std::string id;
  std::string description;
  std::vector<RankId> members;
  std::string backend;
};

// Interned strings; id 0 is "".
class Strings {
 public:
  Strings();
  uint32_t intern(std::string_view text);
  [[nodiscard]] const std::string& at(uint32_t id) const { return values_[id]; }
  [[nodiscard]] size_t size() const { return values_.size(); }

 private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
  };
  std::vector<std::string> values_;
  std::unordered_map<std::string, uint32_t, Hash, std::equal_to<>> ids_;
};

struct Trace {
  pb::TraceHeader header;
  Strings strings;
  std::vector<Communicator> communicators;
  std::vector<RankTrace> ranks;  // ascending by rank; may be a part of the job
  // What logs, dumps and tables say of the run, in the order of the inputs (evidence.proto).
  std::vector<pb::Evidence> evidence;

  [[nodiscard]] size_t operations() const;
};

}  // namespace rehearse::traces
