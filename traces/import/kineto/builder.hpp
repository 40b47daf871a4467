// SPDX-License-Identifier: Apache-2.0
// Turns the events of one Kineto file into the operations of a rank. Events come in any order; what
// needs several of them (launch and kernel, wait and record, arguments of collectives) is joined in
// finish().
#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "traces/import/host_calls.hpp"
#include "traces/import/kineto/communication.hpp"
#include "traces/import/kineto/event.hpp"
#include "traces/import/kineto/metadata.hpp"
#include "traces/import/lane_table.hpp"
#include "traces/import/notes.hpp"
#include "traces/import/part.hpp"
#include "traces/import/steps.hpp"

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

  [[nodiscard]] std::string at(const Element& element) const;
  void note(const char* id, Severity severity, const Element& element, const char* advice);
  [[nodiscard]] bool times(const Event& e, const Element& element, Nanos& start, Nanos& duration);
  [[nodiscard]] bool lane_of(const LaneKey& key, const Element& element, LaneId& lane);
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
  [[nodiscard]] std::vector<int64_t> correlations_to_keep() const;
  void join_syncs();
  void join_calls(const Metadata& metadata);

  ReadContext& context_;
  std::string file_;
  RankPart part_;
  Communication communication_;
  Notes notes_;
  LaneTable lanes_;
  struct Thread {
    std::string pid, tid;  // as written
    int64_t lane = -1;     // -1: none yet
  };
  Thread thread_;  // of the last host event
  std::vector<uint32_t> name_cache_;
  HostCalls calls_;
  std::vector<SyncDetail> sync_details_;
  std::unordered_map<int64_t, uint64_t> addresses_;
  std::map<int64_t, uint64_t> device_work_;
  std::vector<NamedStep> named_steps_;   // of ranges that users named
  std::vector<int64_t> memory_devices_;  // per entry of ops.memory
};

}  // namespace rehearse::traces::kineto
