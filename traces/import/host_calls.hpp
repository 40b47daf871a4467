// SPDX-License-Identifier: Apache-2.0
// Host calls and the GPU work that they put on streams share correlation ids. Joins them once all
// operations of a process are known, and keeps the calls that later joins ask for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/finding.hpp"
#include "traces/model/trace.hpp"

namespace rehearse::traces {

class HostCalls {
 public:
  // A call of any name that put work on the GPU becomes a launch. `keep` are the ids that are asked for
  // later, in any order. Work without a launch, and calls that claim the same, are told.
  void join(RankTrace& trace, std::vector<int64_t> keep, const std::string& where,
            Findings& findings);
  // The first call of that id; nothing of ids that were not to be kept, and of 0.
  [[nodiscard]] std::optional<uint32_t> find(int64_t correlation) const;
  // What the call of that id waits for or records; null when there is none or it does not synchronise.
  [[nodiscard]] Sync* sync(int64_t correlation, Operations& ops) const;

 private:
  struct HostCall {
    int64_t correlation = 0;
    uint32_t op = 0;
  };
  static bool before(const HostCall& a, const HostCall& b) { return a.correlation < b.correlation; }
  std::vector<HostCall> kept_;  // by correlation, then in the order of the file
};

}  // namespace rehearse::traces
