// SPDX-License-Identifier: Apache-2.0
// Turns the events of one Kineto file into the operations of a rank. Events come in any order; what
// needs several of them (launch and kernel, wait and record, arguments of collectives) is joined in
// finish().
#pragma once

#include <array>
#include <string>
#include <unordered_map>
#include <vector>

#include "traces/import/kineto/communication.hpp"
#include "traces/import/kineto/event.hpp"
#include "traces/import/kineto/metadata.hpp"
#include "traces/import/part.hpp"

namespace rehearse::traces::kineto {

class Builder {
 public:
  Builder(ReadContext& context, const std::string& file);
  // Space for that many operations; address space, not memory, until they come.
  void reserve(size_t operations) { part_.trace.ops.reserve(operations); }
  // One event at `element` of the file.
  void add(const Event& event, const Element& element);
  // All events are in. One part, or one per GPU of a process that drives several (devices.hpp).
  [[nodiscard]] std::vector<RankPart> finish(const Metadata& metadata);

 private:
  struct SyncDetail {  // from cuda_sync
    int64_t correlation = 0, record = -1, event = -1;
    int64_t device = -1, stream = -1, wait_stream = -1;
  };
  struct RuntimeOp {
    int64_t correlation = 0;
    uint32_t op = 0;
  };

  [[nodiscard]] std::string at(const Element& element) const;
  void note(const char* id, Severity severity, const Element& element, const char* advice);
  [[nodiscard]] bool times(const Event& e, const Element& element, Nanos& start, Nanos& duration);
  [[nodiscard]] bool lane_of(LaneKind kind, int64_t owner, int64_t id, const Element& element,
                             LaneId& lane);
  [[nodiscard]] bool host_lane(const Event& e, const Element& element, LaneId& lane);
  [[nodiscard]] uint32_t name_of(std::string_view name, const Element& element);
  void gpu(const Event& e, const Element& element);
  void runtime(const Event& e, const Element& element);
  void host(const Event& e, const Element& element, OpKind kind);
  void annotation(const Event& e, const Element& element);
  void memory(const Event& e, const Element& element);
  void label(const Event& e);
  void instant(const Event& e, const Element& element);
  bool before_kineto(const Event& e, const Element& element);
  void flush_repeats();
  [[nodiscard]] std::vector<int64_t> correlations_to_keep() const;
  void join_launches();
  void join_syncs();
  void join_calls(const Metadata& metadata);
  void name_lanes(const std::vector<int64_t>& communicating);
  void choose_gpu(const std::vector<int64_t>& communicating);

  ReadContext& context_;
  std::string file_;
  RankPart part_;
  Communication communication_;

  struct LaneKey {
    LaneKind kind = LaneKind::kHostThread;
    int64_t owner = 0, id = 0;  // process and thread, or device and stream
    bool operator==(const LaneKey&) const = default;
  };
  struct LaneHash {
    size_t operator()(const LaneKey& k) const;
  };
  std::unordered_map<LaneKey, LaneId, LaneHash> lanes_;
  struct Recent {
    LaneKey key;
    int64_t lane = -1;  // -1: none yet
  };
  std::array<Recent, 2> recent_{};  // host threads, streams
  struct Thread {
    std::string pid, tid;  // as written
    int64_t lane = -1;     // -1: none yet
  };
  Thread thread_;  // of the last host event
  std::vector<LaneKey> lane_keys_;
  std::unordered_map<LaneKey, uint32_t, LaneHash> labels_;
  std::vector<uint32_t> name_cache_;
  struct Repeat {
    const char* id = nullptr;
    Severity severity = Severity::kInfo;
    const char* advice = nullptr;
    uint64_t more = 0;  // beyond the first, which is in the findings already
  };
  std::vector<Repeat> repeats_;
  std::vector<RuntimeOp> runtime_;  // host calls that synchronise or communicate, by correlation
  std::vector<SyncDetail> sync_details_;
  std::unordered_map<int64_t, uint64_t> addresses_;
  std::unordered_map<int64_t, uint64_t> device_kernels_;
  std::vector<int64_t> memory_devices_;  // per entry of ops.memory
};

}  // namespace rehearse::traces::kineto
