// SPDX-License-Identifier: Apache-2.0
// Calls whose every message is a flow (fidelity step), while they go on: which messages still wait for others. A plan
// starts as a whole, or, for chains, hop by hop as members come.
#pragma once

#include <unordered_map>
#include <vector>

#include "sim/replay/shapes.hpp"
#include "sim/replay/tags.hpp"

namespace rehearse::sim {

class MessageRuns {
 public:
  void start(uint32_t meeting, const DeclaredPlan& plan, Fabric& fabric) {
    Run& run = begin(meeting, plan);
    for (uint32_t m = 0; m < plan.route.size(); ++m) {
      if (run.waits[m] == 0) send(meeting, plan, m, fabric);
    }
  }

  // Both ends of a hop are there, or its buffers hold what it sends.
  void open_hop(uint32_t meeting, const DeclaredPlan& plan, uint32_t hop, Fabric& fabric) {
    auto at = runs_.find(meeting);
    if (at == runs_.end()) {
      Run& run = begin(meeting, plan);
      // The first message of each hop waits for it to be opened.
      for (size_t m = 0; m < run.waits.size(); m += plan.per_hop) ++run.waits[m];
      at = runs_.find(meeting);
    }
    const uint32_t first = hop * plan.per_hop;
    if (--at->second.waits[first] == 0) send(meeting, plan, first, fabric);
  }

  // Starts what waited for message `m`. True: all messages of the call have ended.
  [[nodiscard]] bool ended(uint32_t meeting, const DeclaredPlan& plan, uint32_t m, Fabric& fabric) {
    Run& run = runs_.at(meeting);
    for (uint32_t i = plan.next_begin[m]; i < plan.next_begin[m + 1]; ++i) {
      if (--run.waits[plan.next[i]] == 0) send(meeting, plan, plan.next[i], fabric);
    }
    if (--run.left > 0) return false;
    runs_.erase(meeting);
    return true;
  }

 private:
  struct Run {
    std::vector<uint32_t> waits;  // by message: how many must have ended before
    size_t left = 0;
  };

  Run& begin(uint32_t meeting, const DeclaredPlan& plan) {
    Run& run = runs_[meeting];
    run.waits = plan.waits;
    run.left = plan.route.size();
    return run;
  }

  static void send(uint32_t meeting, const DeclaredPlan& plan, uint32_t m, Fabric& fabric) {
    fabric.start(plan.route[m], plan.bytes[m], tag_of(Tag::kMessage, m, meeting));
  }

  std::unordered_map<uint32_t, Run> runs_;  // by meeting
};

}  // namespace rehearse::sim
