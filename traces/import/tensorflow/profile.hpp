// SPDX-License-Identifier: Apache-2.0
// Devices, host threads and steps of one host become ranks. Filled device by device first, then host line
// by host line, so that launches find the GPU that their work ran on.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "traces/import/part.hpp"

namespace rehearse::traces::tensorflow {

struct Event {
  uint32_t name = 0;  // string id
  Nanos start = 0, duration = 0;
  int64_t correlation = 0;
  OpKind kind = OpKind::kHost;  // kKernel, kCopy or kMemset on devices
  Copy copy;
  int64_t step = -1;  // of a host event that marks a step
};

class Profile {
 public:
  Profile(ReadContext& context, std::string file) : context_(context), file_(std::move(file)) {}

  // False, and a finding, when the times make no sense; a negative duration becomes 0.
  [[nodiscard]] bool plausible(Event& event, uint64_t place);
  void describe_device(int64_t device, std::string model, Bytes memory);
  void device_event(int64_t device, int64_t stream, const Event& event);
  void step(int64_t device, const Step& step);
  [[nodiscard]] size_t steps(int64_t device) const;  // so far
  // All events of a host thread; no device event may follow.
  void host_line(int64_t id, std::string_view name, const std::vector<Event>& events);
  [[nodiscard]] bool empty() const;

  // `base` is added to all times.
  [[nodiscard]] std::vector<RankPart> finish(Nanos base, const std::string& host);

 private:
  struct Device {
    RankPart part;
    std::map<std::pair<LaneKind, int64_t>, LaneId> lanes;
  };
  [[nodiscard]] LaneId lane_of(Device& device, LaneKind kind, int64_t id, std::string_view name);
  void add_call(Device& device, LaneId lane, const Event& event);

  ReadContext& context_;
  std::string file_;
  std::map<int64_t, Device> devices_;
  std::map<int64_t, std::pair<std::string, Bytes>> described_;
  std::unordered_map<int64_t, int64_t> device_of_;  // correlation -> device
  bool gpu_work_ = false;
  std::vector<Step> host_steps_;
};

}  // namespace rehearse::traces::tensorflow
