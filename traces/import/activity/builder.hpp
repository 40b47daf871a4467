// SPDX-License-Identifier: Apache-2.0
// Turns activity records in CUPTI's shape (an Nsight Systems database, our own capture) into the operations
// of one process. Records come in any order; what needs several of them (launch and kernel, wait and event,
// NCCL's calls and their kernels) is joined in finish().
#pragma once

#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "traces/import/activity/nccl.hpp"
#include "traces/import/host_calls.hpp"
#include "traces/import/lane_table.hpp"
#include "traces/import/notes.hpp"
#include "traces/import/part.hpp"
#include "traces/import/steps.hpp"

namespace rehearse::traces::activity {

// Where a record stands, for findings: "row 17 of NVTX_EVENTS", "record 3, byte 120".
struct Place {
  const char* table = nullptr;  // null: a record of a file without tables
  uint64_t number = 0;
  uint64_t byte = 0;
};

// Times of a record; a negative duration is repaired, times that make no sense are refused.
struct Span {
  Nanos start = 0;
  Nanos duration = 0;
};

struct GpuWork {
  Span span;
  uint32_t name = 0;  // string id
  int64_t device = 0;
  int64_t context = 0;
  int64_t stream = 0;
  int64_t correlation = 0;
};

// What a synchronising call waited for (CUpti_ActivitySynchronizationType).
struct Wait {
  int64_t type = 0;  // 1 host for event, 2 stream for event, 3 host for stream, 4 host for context
  int64_t correlation = 0;
  int64_t context = 0;
  int64_t stream = -1;
  int64_t event = -1;
};

// Which event was recorded on which stream.
struct EventRecord {
  int64_t correlation = 0;
  int64_t context = 0;
  int64_t stream = -1;
  int64_t event = -1;
};

// What a range of NVTX says beyond its name.
struct RangeFacts {
  CallFacts call;
  std::optional<uint32_t> ranks;  // of a communicator that is created
  std::optional<uint32_t> rank;
};

class Builder {
 public:
  // `where` names the process in findings: "run.sqlite, process 144".
  Builder(ReadContext& context, std::string where);

  void kernel(const GpuWork& work, const Place& place);
  void copy(const GpuWork& work, const Copy& copy, const Place& place);
  void memset(const GpuWork& work, const Place& place);
  // A call of the CUDA runtime or driver.
  void api(const Span& span, uint32_t name, int64_t thread, int64_t correlation,
           const Place& place);
  void wait(const Wait& wait) { waits_.push_back(wait); }
  void event(const EventRecord& record) { events_.push_back(record); }
  // A range of NVTX on a thread; names that carry a number of their own ("aten::mul, op_id = 7") lose it.
  void range(const Span& span, std::string_view name, int64_t thread, const RangeFacts& facts,
             const Place& place);
  void overhead(const Span& span, uint32_t name, int64_t thread, const Place& place);
  // `device` may be -1, not recorded.
  void memory(Nanos at, const Memory& memory, int64_t device, int64_t thread, uint32_t name,
              const Place& place);
  void name_thread(int64_t thread, uint32_t name) {
    lanes_.label({LaneKind::kHostThread, 0, 0, thread}, name);
  }
  // A name as a string id; at most 16 KiB of it.
  [[nodiscard]] uint32_t intern(std::string_view name, const Place& place);
  [[nodiscard]] bool host_lane(int64_t thread, const Place& place, LaneId& lane);
  void note(const char* id, Severity severity, const Place& place, const char* advice);

  [[nodiscard]] NcclCalls& nccl() { return nccl_; }
  [[nodiscard]] size_t operations() const { return part_.trace.ops.size(); }
  [[nodiscard]] bool has_gpu_work() const { return !device_work_.empty(); }
  // Ranges of PyTorch's own operators were seen.
  [[nodiscard]] bool has_pytorch() const { return pytorch_; }
  // The device with most work, 0 without any; call before finish().
  [[nodiscard]] int64_t device() const;
  // All records are in. Rank, host and GPU model are left to the caller. One part, or one per GPU of a
  // process that drives several (devices.hpp).
  [[nodiscard]] std::vector<RankPart> finish();

 private:
  [[nodiscard]] bool times(Span& span, const Place& place);
  [[nodiscard]] bool lane_of(const LaneKey& key, const Place& place, LaneId& lane);
  [[nodiscard]] bool stream_lane(const GpuWork& work, const Place& place, LaneId& lane);
  [[nodiscard]] int32_t lane_of_stream(int64_t context, int64_t stream);
  [[nodiscard]] std::vector<int64_t> correlations_to_keep() const;
  void join_syncs();
  void join_calls();

  ReadContext& context_;
  std::string where_;
  RankPart part_;
  NcclCalls nccl_;
  Notes notes_;
  LaneTable lanes_;
  std::map<int64_t, uint64_t> device_work_;
  std::vector<int64_t> memory_devices_;  // per entry of ops.memory
  std::map<int64_t, int64_t> device_of_context_;
  HostCalls calls_;
  std::vector<Wait> waits_;
  std::vector<EventRecord> events_;
  std::vector<NamedStep> named_steps_;
  bool pytorch_ = false;
};

}  // namespace rehearse::traces::activity
