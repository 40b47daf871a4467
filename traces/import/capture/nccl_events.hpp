// SPDX-License-Identifier: Apache-2.0
// Events of NCCL's profiler plugin of one session, and the windows that they make (activity/nccl.hpp). From
// plugin v5 on a kernel launch is an event of its own, tied to the launch by an external correlation and to
// the calls by their common group; before, a group starts on the launching thread just after its launch.
#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "traces/import/activity/builder.hpp"
#include "traces/proto/capture.pb.h"

namespace rehearse::traces::capture {

class NcclEvents {
 public:
  // `facts` are those of a collective or point-to-point event; `at` is absolute.
  void start(const pb::CaptureNcclStart& event, Nanos at, const activity::CallFacts& facts);
  void stop(uint64_t id, Nanos at);
  // The launch with this correlation id happened inside event `id`.
  void tie(int64_t correlation, uint64_t id) { ties_.emplace_back(correlation, id); }
  // Hands all windows over and forgets them.
  void finish(activity::Builder& builder);
  // Events that no window uses: proxy, channels, network.
  [[nodiscard]] uint64_t other() const { return other_; }

 private:
  struct Event {
    uint64_t parent = 0;
    uint32_t type = 0;
    int64_t thread = 0;
    Nanos at = 0, end = 0;
    activity::CallFacts facts;
  };
  [[nodiscard]] uint64_t ancestor(uint64_t id, uint32_t type) const;

  std::map<uint64_t, Event> events_;
  std::vector<std::pair<int64_t, uint64_t>> ties_;
  uint64_t other_ = 0;
};

}  // namespace rehearse::traces::capture
