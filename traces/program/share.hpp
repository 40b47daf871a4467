// SPDX-License-Identifier: Apache-2.0
// Lets ranks that do the same hold their columns once: replicas differ in durations at most, clones of one recording
// not even in that. Found by contents, column by column, in order of ranks.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "traces/program/program.hpp"

namespace rehearse::traces {

class SharedColumns {
 public:
  // Replaces columns of `rank` by equal ones seen before. O(operations).
  void share(RankProgram& rank);

 private:
  template <typename T>
  using Seen = std::unordered_map<uint64_t, Column<T>>;  // by hash of the contents
  Seen<OpKind> kinds_;
  Seen<uint32_t> numbers_;
  Seen<Nanos> times_;
  Seen<uint16_t> shares_;
};

}  // namespace rehearse::traces
