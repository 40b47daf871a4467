// SPDX-License-Identifier: Apache-2.0
// What a Chakra node needs to know about its place among the others: which nodes it follows, which host
// operation it stands in, and how long it works itself.
#pragma once

#include <cstdint>
#include <vector>

#include "traces/model/trace.hpp"

namespace rehearse::traces {

constexpr uint32_t kNoParent = UINT32_MAX;

struct ChakraEdges {
  std::vector<uint32_t> begin;   // operations that op follows: on[begin[op] .. begin[op + 1])
  std::vector<uint32_t> on;      // ascending, without repeats
  std::vector<uint32_t> parent;  // enclosing host operation, or the launch of GPU work; kNoParent
  std::vector<Nanos> own;        // time of its own
};

// Annotations and memory events follow nothing and nothing follows them.
[[nodiscard]] ChakraEdges chakra_edges(const RankTrace& rank);

}  // namespace rehearse::traces
