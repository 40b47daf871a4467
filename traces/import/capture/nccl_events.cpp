// SPDX-License-Identifier: Apache-2.0
#include "traces/import/capture/nccl_events.hpp"

#include <algorithm>
#include <limits>

namespace rehearse::traces::capture {
namespace {

constexpr uint32_t kGroup = 1, kCollective = 2, kPointToPoint = 4, kGroupApi = 256,
                   kCollectiveApi = 512, kPointToPointApi = 1024, kKernelLaunch = 2048;
constexpr uint32_t kUsed = kGroup | kCollective | kPointToPoint | kGroupApi | kCollectiveApi |
                           kPointToPointApi | kKernelLaunch;
constexpr int kDeepest = 8;

bool is_call(uint32_t type) { return type == kCollective || type == kPointToPoint; }

}  // namespace

void NcclEvents::start(const pb::CaptureNcclStart& event, Nanos at,
                       const activity::CallFacts& facts) {
  if ((event.type() & kUsed) == 0) {
    ++other_;
    return;
  }
  events_[event.id()] = {event.parent(), event.type(), event.thread(), at, at, facts};
}

void NcclEvents::stop(uint64_t id, Nanos at) {
  if (const auto event = events_.find(id); event != events_.end()) event->second.end = at;
}

// The nearest event of a type that `id` is, or stands in; 0: none.
uint64_t NcclEvents::ancestor(uint64_t id, uint32_t type) const {
  for (int i = 0; i < kDeepest; ++i) {
    const auto event = events_.find(id);
    if (event == events_.end()) return 0;
    if (event->second.type == type) return id;
    id = event->second.parent;
  }
  return 0;
}

void NcclEvents::finish(activity::Builder& builder) {
  const bool launches = std::any_of(events_.begin(), events_.end(),
                                    [](const auto& e) { return e.second.type == kKernelLaunch; });
  const uint32_t group_type = launches ? kGroupApi : kGroup;
  const uint32_t moment_type = launches ? kKernelLaunch : kGroup;
  std::map<uint64_t, size_t> windows;  // by id of the group
  std::map<int64_t, Nanos> previous;   // start of the last group per thread
  for (const auto& [id, event] : events_) {
    if (event.type != moment_type) continue;
    const uint64_t group = ancestor(id, group_type);
    LaneId lane = 0;
    if (group == 0 || windows.contains(group) || !builder.host_lane(event.thread, {}, lane))
      continue;
    Nanos from = event.at, to = std::max(event.at, event.end);
    if (launches) {
      // All launches of the group lie inside it.
      const Event& whole = events_.at(group);
      to = std::max(to, whole.end);
    } else {
      const auto [last, first] = previous.emplace(event.thread, event.at);
      from = first ? std::numeric_limits<Nanos>::min() : last->second + 1;
      last->second = event.at;
      to = event.at;
    }
    windows[group] = builder.nccl().window(lane, from, to);
  }
  for (const auto& [id, event] : events_) {
    if (!is_call(event.type)) continue;
    const auto window = windows.find(ancestor(id, group_type));
    if (window != windows.end()) builder.nccl().add(window->second, event.facts);
  }
  for (const auto& [correlation, id] : ties_) {
    const auto window = windows.find(ancestor(id, group_type));
    if (window != windows.end()) builder.nccl().tie(correlation, window->second);
  }
  events_.clear();
  ties_.clear();
}

}  // namespace rehearse::traces::capture
